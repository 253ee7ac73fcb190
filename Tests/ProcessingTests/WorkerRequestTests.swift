import AudioIO
import Denoise
import Foundation
import Glibc
import Media
import Terms
import Testing
import Workers

@testable import Processing

struct WorkerRequestTests {
  private static let facts = MediaFacts(
    decodedInOrder: .caf, codec: "alac", sampleRate: 48_000, channels: 2, frames: nil, sampleBits: 24)
  private static let copy = WorkingCopy(facts, at: "/jobs/1/1-0123456789abcdef.working")
  private static let settings = DenoiseSettings(
    method: .wiener, reductionDB: 7.5, sensitivity: 1.2, output: .residue)

  static let works: [WorkerRequest.Work] = [
    .probe, .intake(IntakeWork(pyramid: "/a.pyramid", soundMap: "/a.map", labels: "/a.labels")), .ffmpegCheck,
    .noiseRegions(nil), .noiseRegions(copy), .spectrum(TimeWindow(start: 0.1, end: 2)),
    .waveform(WaveformWork(pyramid: "/a.pyramid", soundMap: "/a.map")),
    .waveform(WaveformWork(pyramid: "/a \"quoted\"\nname – ü", copy: copy, findsNoiseRegions: true)),
    .denoise(DenoiseWork(DenoiseParameters(), output: "/out")),
    .denoise(
      DenoiseWork(
        DenoiseParameters(noise: .region(start: 1.25, end: 2.75), settings: settings, format: .flac), output: "/out",
        pyramid: "/p", copy: copy, replacement: .init(of: "/in.caf", facts, output: "/whole"),
        window: TimeWindow(start: 0, end: 1e9), findsNoiseRegions: true)),
    .denoise(DenoiseWork(DenoiseParameters(noise: .quantile(0.25)), output: "/out")),
    .convert(ConvertWork(output: "/out", format: .opus)),
    .convert(
      ConvertWork(
        output: "/out", format: .mp3,
        resampled: AudioFormat(container: .wav, codec: .pcmF32, sampleRate: 96_000, channels: 6))),
  ]

  @Test(arguments: works)
  func aRequestIsOneLineAndComesBack(work: WorkerRequest.Work) throws {
    var bare = WorkerRequest(work, on: "/data/audio.wav")
    bare.threads = 3
    let fence = WorkerFence(memoryBytes: .max, processorSeconds: 60, outputBytes: 0)
    for request in [bare, WorkerRequest(work, on: "/a/b", in: "/jobs/1", fence: fence, ffmpeg: "/opt/ffmpeg")] {
      let line = request.line()
      #expect(line.last == UInt8(ascii: "\n") && line.count { $0 == UInt8(ascii: "\n") } == 1)
      #expect(try read(line) == request)
    }
  }

  @Test func theParametersAreThoseOfARow() throws {
    let asked = DenoiseParameters(noise: .region(start: 1.25, end: 2.75), settings: Self.settings, format: .flac)
    let line = WorkerRequest(.denoise(DenoiseWork(asked, output: "/out")), on: "/in").line()
    let row =
      #"{"format":"flac","method":"wiener","noise":{"end":2.75,"start":1.25},"output":"residue","reduction":7.5,"#
      + #""sensitivity":1.2}"#
    #expect(String(decoding: line, as: UTF8.self).contains(#""parameters":\#(row)"#))
  }

  @Test(
    "what is no whole request is refused by name",
    arguments: [
      ("", ProcessingError.RequestFault.truncated), ("{\"work\":{\"probe\":{}}", .truncated), ("\n", .malformed),
      ("{}\n", .malformed), ("probe\n", .malformed), (#"{"source":"/a","work":{"unknown":{}}}"# + "\n", .malformed),
      (String(repeating: " ", count: WorkerRequest.sizeLimit) + "\n", .tooLong),
      (String(repeating: "x", count: 1_000_000), .tooLong),
    ])
  func fault(text: String, expected: ProcessingError.RequestFault) throws {
    do {
      _ = try read(Array(text.utf8))
      Issue.record("it was read")
    } catch ProcessingError.request(let fault) {
      #expect(fault == expected)
    }
  }

  @Test func aRequestIsReadThoughItsPipeStaysOpen() throws {
    let request = WorkerRequest(.probe, on: "/a")
    var ends: [Int32] = [0, 0]
    try #require(unsafe pipe(&ends) == 0)
    defer { close(ends[0]) }
    // The request is complete before the other end is closed.
    let line = request.line()
    #expect(unsafe write(ends[1], line, line.count) == line.count)
    #expect(try WorkerRequest(from: ends[0]) == request)
    close(ends[1])
  }

  /// The request at the start of a file with these bytes.
  private func read(_ bytes: [UInt8]) throws -> WorkerRequest {
    let path = NSTemporaryDirectory() + "stillwave-request-" + UUID().uuidString
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    defer {
      close(file)
      unsafe _ = unlink(path)
    }
    return try WorkerRequest(from: file)
  }
}
