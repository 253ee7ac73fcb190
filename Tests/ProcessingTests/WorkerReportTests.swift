import AudioIO
import Denoise
import Foundation
import Glibc
import Processing
import SoundFiles
import Terms
import Testing
import Waveform
import Workers

struct WorkerReportTests {
  static let reports: [WorkerReport] = {
    let warning = Warning(code: "truncated", detail: "a \"quoted\" line\nand another – ü")
    let probe = #"{"probe":{"shape":{"container":"wav","codec":"pcm_s16","sample_rate":44100,"channels":2,"frames":5},"#
    let known: [WorkerReport] = [
      .progress(WorkerProgress(fraction: 0.42, readyFrames: 1 << 40, totalFrames: nil, estimatedFrames: 7)),
      .unfenced(22), .failed(WorkerFailure(code: "io_error", detail: "a/b", retry: true)), .ffmpegWorks(false),
      .noiseRegions([NoiseRegion(4000..<24_000, sampleRate: 16_000, level: -60.1, score: 0.9)]), .noiseRegions([]),
    ]
    let read = [
      probe + #""file_extension":"wav","media_type":"audio/wav","warnings":[]}}"#,
      #"{"analysis":{"frames":35184372088831,"warnings":[\#(json(warning))]}}"#,
      #"{"denoised":{"frames":3,"noise":{"quantile":0.2},"link":"all","clipped_samples":4,"#
        + #""warnings":[\#(json(warning))]}}"#,
      #"{"denoised":{"frames":3,"noise":{"start":1,"end":2.5,"adapted":true},"link":"all","clipped_samples":4,"#
        + #""warnings":[],"#
        + #""profile":{"frequencies":[20.5],"power_db":[-80]},"noise_regions":[]}}"#,
      #"{"converted":{"frames":3}}"#, #"{"spectrum":{"frequencies":[0,20.83],"power_db":[-81.2,-77]}}"#,
    ].compactMap { WorkerReport(line: line($0)) }
    precondition(read.count == 6, "a report can't be read")
    return known + read
  }()

  private static func json(_ warning: Warning) -> String {
    String(decoding: (try? JSONEncoder().encode(warning)) ?? Data(), as: UTF8.self)
  }

  private static func line(_ text: String) -> ArraySlice<UInt8> { Array(text.utf8)[...] }

  @Test(arguments: reports)
  func aReportIsOneLineAndComesBack(report: WorkerReport) {
    let line = report.line()
    #expect(line.last == UInt8(ascii: "\n") && line.count { $0 == UInt8(ascii: "\n") } == 1)
    #expect(line.starts(with: "{\"".utf8))
    #expect(WorkerReport(line: line[...]) == report)
    #expect(WorkerReport(line: line.dropLast()) == report)
  }

  @Test(
    "a report with numbers that no sound has isn't read",
    arguments: [
      #"{"analysis":{"frames":35184372088832,"warnings":[]}}"#, #"{"analysis":{"frames":-1,"warnings":[]}}"#,
      #"{"intake":{"probe":PROBE,"analysis":{"frames":9223372036854775807,"warnings":[]}}}"#,
      #"{"progress":{"fraction":1.5,"ready_frames":0}}"#, #"{"progress":{"fraction":1,"ready_frames":-1}}"#,
      #"{"converted":{"frames":9223372036854775807}}"#,
      #"{"trimmed":{"frames":-5,"warnings":[],"lacks_pictures":false}}"#,
      #"{"denoised":{"frames":3,"clipped_samples":-4,"warnings":[]}}"#,
      #"{"noise_regions":[{"frames":[0,9223372036854775807],"sample_rate":8000,"level":-60,"score":1}]}"#,
      #"{"probe":PROBE}"#.replacing("PROBE", with: probe(channels: 1025)),
      #"{"probe":PROBE}"#.replacing("PROBE", with: probe(rate: 0)),
      #"{"probe":PROBE}"#.replacing("PROBE", with: probe(frames: "-1")),
      #"{"probe":PROBE}"#.replacing("PROBE", with: probe().replacing("\"wav\",\"media", with: "\"x/y\",\"media")),
    ])
  func implausible(text: String) {
    let text = text.replacing("PROBE", with: Self.probe())
    #expect(WorkerReport(line: Self.line(text)) == nil)
    #expect(WorkerReport(line: Self.line(#"{"probe":\#(Self.probe())}"#)) != nil)
  }

  private static func probe(rate: Int = 44_100, channels: Int = 2, frames: String = "5") -> String {
    #"{"shape":{"container":"wav","codec":"pcm_s16","sample_rate":\#(rate),"channels":\#(channels),"#
      + #""frames":\#(frames)},"file_extension":"wav","media_type":"audio/wav","warnings":[]}"#
  }

  @Test func membersAreInSnakeCase() {
    let report = WorkerReport.progress(
      WorkerProgress(fraction: 0.5, readyFrames: 256, totalFrames: 1000, estimatedFrames: nil))
    let text = #"{"progress":{"fraction":0.5,"ready_frames":256,"total_frames":1000}}"# + "\n"
    #expect(String(decoding: report.line(), as: UTF8.self) == text)
  }

  @Test(arguments: [
    "", "\n", "{}", "[]", "null", "progress", "{\"progress\":", "{\"progress\":{}}", "{\"error\":\"no\"}",
    "{\"other\":1}",
    #"{"progress":{"fraction":"0.5","ready_frames":1}}"#, #"{"analysis":{"frames":1e300,"warnings":[]}}"#,
    #"{"analysis":{"frames":1,"warnings":[]},"error":{"code":"a","detail":"b","retry":false}}"#,
    "Wait: libsomething warns", "\u{0}\u{1}",
  ])
  func garbageIsNoReport(text: String) {
    #expect(WorkerReport(line: Self.line(text)) == nil)
  }

  @Test func bytesThatAreNotTextAreNotAReport() {
    #expect(WorkerReport(line: [0xFF, 0xFE, 0x00]) == nil)
  }

  static let failures: [(ProcessingError, String, Bool)] = [
    (.audio(.unsupportedMedia(found: nil)), "unsupported_media", false),
    (.audio(.unsupportedMedia(found: "a ZIP archive")), "unsupported_media", false),
    (.audio(.undecodable(code: 3, reason: "A secret.")), "unsupported_media", false),
    (.audio(.empty), "unsupported_media", false),
    (.audio(.channelsOutOfRange(channels: 255, limit: 32)), "unsupported_format", false),
    (.audio(.sampleRateOutOfRange(hertz: 0, limits: 1...768_000)), "unsupported_format", false),
    (.audio(.durationOutOfRange(seconds: 90_000.123456, limit: 86_400)), "unsupported_format", false),
    (
      .audio(.unwritable(AudioFormat(container: .mp3, codec: .mp3, sampleRate: 96_000, channels: 2))),
      "unsupported_output", false
    ),
    (.audio(.seekFailed(frame: 7)), "seek_failed", false),
    (.audio(.writeFailed(code: 2, reason: "A secret.")), "write_failed", true),
    (.audio(.system(operation: "write", errno: 28)), "disk_full", false),
    (.waveform(.io(operation: "write", path: "/secret/path", errno: 5)), "io_error", true),
    (.waveform(.windowReversed(start: 5, end: 1)), "invalid_parameter", false),
    (.waveform(.unsupportedFormat(sampleRate: 0, channels: 1)), "waveform_failed", false),
    (.denoise(.regionTooShort(frames: 100, needed: 4000)), "noise_region_too_short", false),
    (.denoise(.silentRegion), "silent_noise", false),
    (.recordingTooShort(frames: 1, needed: 4096), "recording_too_short", false),
    (.regionOutside(start: 1, end: 2.00004, duration: 1.5), "noise_region_outside", false),
    (.regionOutside(start: 1, end: 2, duration: nil), "noise_region_outside", false),
    (.system(operation: "open", path: "/secret/path", errno: 2), "io_error", true),
    (.request(.truncated), "worker_failed", false), (.request(.tooLong), "worker_failed", false),
    (.request(.malformed), "worker_failed", false),
  ]

  @Test(arguments: failures.indices)
  func everyFailureHasACodeAndASentenceForStrangers(index: Int) {
    let (error, code, retry) = Self.failures[index]
    let failure = WorkerFailure(error)
    #expect(failure.code == code && failure.retry == retry)
    let sentence = failure.detail
    #expect(sentence.hasSuffix(".") && !sentence.hasSuffix(".."), "\(sentence)")
    #expect(!sentence.contains("secret") && !sentence.contains("Optional"), "\(sentence)")
  }

  @Test func aFailureNamesTheFactsAndTheRemedy() {
    func detail(_ error: ProcessingError) -> String { WorkerFailure(error).detail }
    #expect(detail(.audio(.unsupportedMedia(found: "a ZIP archive"))).hasPrefix("This is a ZIP archive. These"))
    #expect(
      detail(.audio(.writeFailed(code: 0, reason: "wav files end at 4 GiB"))).hasSuffix(
        "written: wav files end at 4 GiB."))
    #expect(detail(.audio(.channelsOutOfRange(channels: 255, limit: 32))).contains("255 channels; 1 to 32"))
    #expect(detail(.audio(.durationOutOfRange(seconds: 90_000.123456, limit: 86_400))).contains("lasts 90000.123 s"))
    #expect(detail(.regionOutside(start: 1, end: 2.00004, duration: 1.5)).contains("1–2 s"))
    #expect(detail(.denoise(.regionTooShort(frames: 100, needed: 4000))).contains("100 frames; at least 4000"))
    #expect(detail(.denoise(.regionTooShort(frames: 1, needed: 4000))).contains(" 1 frame; "))
    let flac = AudioFormat(container: .flac, codec: .flacS16, sampleRate: 44_100, channels: 9)
    #expect(detail(.audio(.unwritable(flac))) == "flac can't hold 9 channels at 44100 Hz; wav can.")
    let opus = AudioFormat(container: .ogg, codec: .opus, sampleRate: 44_100, channels: 1)
    #expect(detail(.audio(.unwritable(opus))) == "ogg with opus can't hold 1 channel at 44100 Hz; wav can.")
  }

  @Test func aSystemErrorNamesThePathOnlyToItsOwner() {
    for error in [
      ProcessingError.system(operation: "open", path: "/a/b", errno: ENOENT),
      .waveform(.io(operation: "open", path: "/a/b", errno: ENOENT)),
    ] {
      #expect(WorkerFailure(error).detail == "A file could not be used: open failed: No such file or directory.")
      #expect(
        WorkerFailure(error, namesPaths: true).detail
          == "/a/b could not be used: open failed: No such file or directory.")
    }
  }

  @Test func numbersInSentencesAreFormattedForPeople() {
    #expect([0, 1, 2].map { Words.count($0, "frame") } == ["0 frames", "1 frame", "2 frames"])
    #expect([8.38952380952381, 60, 0.0004, 1.5].map(Words.seconds) == ["8.39", "60", "0", "1.5"])
  }
}
