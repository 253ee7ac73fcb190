import AudioIO
import Denoise
import Media
import PresentRows
import Processing
import Storage
import Synchronization
import Terms
import Testing
import Workers

@testable import Jobs

/// The work that each kind of job requests from a worker.
@Suite struct JobDefinitionTests {
  /// The facts of an m4a file as version 0.1.0 wrote them.
  private static let m4a =
    #"{"audioTracks":1,"bitRate":68781,"channels":1,"codec":"aac","container":"m4a","demuxer":"mov","#
    + #""endsAsPromised":true,"firstFrame":0,"isCut":false,"promisedFrames":96000,"promisesLength":true,"#
    + #""sampleRate":16000}"#
  private static let wma = m4a.replacing("\"m4a\"", with: "\"asf\"").replacing("aac", with: "wmavoice")
    .replacing("\"mov\"", with: "\"asf\"")

  private static let nonce = "0123456789abcdef"

  private func attempt(
    _ kind: JobKind, _ parameters: String = "{}", media: String? = nil, workingFile: String? = nil,
    derivedFrom: Derivation? = nil
  ) -> JobAttempt {
    let id = RecordingID()
    let source = Recording(
      id: id, name: "a",
      format: SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 16_000, channels: 1, frames: 96_000),
      waveformState: .ready, audioKey: ObjectKey(id, "audio.x"), media: media,
      workingKey: workingFile.map { ObjectKey(id, $0) },
      derivedFrom: derivedFrom)
    var job = Job(kind: kind, recording: source.id, output: RecordingID(), parameters: parameters)
    job.attempts = 2
    let token = AttemptToken(job: job.id, attempt: 2, nonce: Self.nonce)
    return JobAttempt(
      job: job, token: token, source: source, audio: ObjectKey(id, "audio.x"),
      files: SourceFiles { [fetched] key in
        fetched.names.withLock { $0.append(key.name) }
        return LocalFile(path: "/recording/\(key.name)")
      }, folder: "/job")
  }

  /// The files that the work needed, in order.
  private final class Fetched: Sendable {
    let names = Mutex<[String]>([])
  }

  private let fetched = Fetched()

  @Test func aWaveformJobReadsTheRecordingsOwnFile() throws {
    let (work, source) = try #require(try WaveformJob.work(of: attempt(.waveform)))
    #expect(source == "/recording/audio.x")
    let labels = EmbeddedLabelsWork(output: "/job/2-\(Self.nonce).labels", sampleRate: 16_000, codec: "pcm_s16")
    let expected = WaveformWork(
      pyramid: "/job/2-\(Self.nonce).pyramid", soundMap: "/job/2-\(Self.nonce).map", findsNoiseRegions: true,
      labels: labels)
    #expect(work == .waveform(expected))
    // Even if there is a working copy, because that may be the lost file.
    let media = try #require(try WaveformJob.work(of: attempt(.waveform, media: Self.m4a, workingFile: "working.wav")))
    let facts = try #require(MediaFacts(json: Self.m4a))
    #expect(media.source == "/recording/audio.x")
    let copy = WorkingCopy(facts, at: "/job/2-\(Self.nonce).working")
    let decoding = WaveformWork(
      pyramid: "/job/2-\(Self.nonce).pyramid", copy: copy, findsNoiseRegions: true, labels: labels)
    #expect(media.work == .waveform(decoding))
    // A cleaned recording has its source's labels.
    let cleaned = Derivation(recording: RecordingID(), job: JobID(), operation: "denoise")
    guard case .waveform(let rebuilt) = try WaveformJob.work(of: attempt(.waveform, derivedFrom: cleaned))?.work else {
      throw JobsError.unreadableParameters(JobID())
    }
    #expect(rebuilt.labels == nil)
  }

  private func denoising(_ attempt: JobAttempt) throws -> (work: DenoiseWork, source: String) {
    guard let (work, source) = try DenoiseJob.work(of: attempt), case .denoise(let denoising) = work else {
      throw JobsError.unreadableParameters(attempt.job.id)
    }
    return (denoising, source)
  }

  @Test func aDenoiseJobKeepsTheKindOfFileIfItCanBeWritten() throws {
    let same = RowJSON.text(DenoiseParameters())
    let plain = try denoising(attempt(.denoise, same))
    #expect(plain.source == "/recording/audio.x" && plain.work.output == "/job/2-\(Self.nonce).audio")
    #expect(plain.work.replacement == nil && plain.work.copy == nil && plain.work.parameters.format == .same)

    let media = try denoising(attempt(.denoise, same, media: Self.m4a, workingFile: "working.wav"))
    #expect(media.source == "/recording/working.wav" && media.work.output == "/job/2-\(Self.nonce).working")
    #expect(media.work.replacement?.original == "/recording/audio.x")
    #expect(media.work.replacement?.output == "/job/2-\(Self.nonce).audio" && media.work.copy == nil)

    let early = try denoising(attempt(.denoise, same, media: Self.m4a))
    #expect(early.source == "/recording/audio.x" && early.work.copy?.path == "/job/2-\(Self.nonce).decoded")

    let other = try denoising(attempt(.denoise, same, media: Self.wma, workingFile: "working.wav"))
    #expect(other.work.replacement == nil && other.work.parameters.format == .wav)
    let asked = RowJSON.text(DenoiseParameters(format: .mp3))
    let mp3 = try denoising(attempt(.denoise, asked, media: Self.m4a, workingFile: "working.wav"))
    #expect(mp3.work.replacement == nil && mp3.work.parameters.format == .mp3)
  }

  @Test func onlyTheFilesThatAWorkerReadsAreFetched() throws {
    let same = RowJSON.text(DenoiseParameters())
    let other = RowJSON.text(DenoiseParameters(format: .mp3))
    let attempts = [
      (attempt(.waveform, media: Self.m4a, workingFile: "working.wav"), ["audio.x"]),
      (attempt(.convert, #"{"format":"mp3"}"#, media: Self.m4a, workingFile: "working.wav"), ["working.wav"]),
      (attempt(.loudness, media: Self.m4a, workingFile: "working.wav"), ["working.wav"]),
      (attempt(.denoise, other, media: Self.m4a, workingFile: "working.wav"), ["working.wav"]),
      (attempt(.denoise, same, media: Self.m4a, workingFile: "working.wav"), ["working.wav", "audio.x"]),
      (attempt(.trim, #"{"start":1,"end":2}"#), ["audio.x"]),
    ]
    for (attempt, names) in attempts {
      let isRead = try attempt.job.kind.definition.work(of: attempt) != nil
      #expect(isRead)
      #expect(fetched.names.withLock { $0 } == names, "\(attempt.job.kind)")
      fetched.names.withLock { $0 = [] }
    }
  }

  @Test func fetchedFilesAreHeldAsLongAsTheAttemptIs() throws {
    final class Hold: Sendable {}
    weak var hold: Hold?
    func files() throws -> SourceFiles {
      let new = Hold()
      hold = new
      let files = SourceFiles { [weak new] key in LocalFile(path: "/\(key.name)", holding: new) }
      #expect(try files.path(of: ObjectKey(RecordingID(), "audio.x")) == "/audio.x")
      return files
    }
    var held: SourceFiles? = try files()
    #expect(hold != nil)
    held = nil
    #expect(hold == nil && held == nil)
  }

  @Test func aConversionUsesFFmpegIfTheSampleRateRequiresIt() throws {
    var attempt = attempt(.convert, #"{"format":"mp3"}"#)
    let (work, source) = try #require(try ConvertJob.work(of: attempt))
    #expect(source == "/recording/audio.x")
    #expect(work == .convert(ConvertWork(output: "/job/2-\(Self.nonce).audio", format: .mp3)))
    var odd = attempt.source
    odd.format.sampleRate = 96_000
    attempt = JobAttempt(
      job: attempt.job, token: attempt.token, source: odd, audio: attempt.audio, files: attempt.files,
      folder: attempt.folder)
    guard case .convert(let resampling)? = try ConvertJob.work(of: attempt)?.work else {
      Issue.record("no conversion")
      return
    }
    #expect(resampling.resampled?.sampleRate == 96_000)
    // Without its working copy, the worker makes one.
    let undecoded = try #require(try ConvertJob.work(of: self.attempt(.convert, #"{"format":"mp3"}"#, media: Self.m4a)))
    #expect(undecoded.source == "/recording/audio.x")
    var expected = ConvertWork(output: "/job/2-\(Self.nonce).audio", format: .mp3)
    expected.copy = WorkingCopy(try #require(MediaFacts(json: Self.m4a)), at: "/job/2-\(Self.nonce).decoded")
    #expect(undecoded.work == .convert(expected))
  }

  @Test(arguments: [JobKind.denoise, .convert])
  func parametersThatCantBeReadGiveNoWork(kind: JobKind) throws {
    for parameters in ["", "{}", #"{"format":"tape"}"#] {
      let isRead = try kind.definition.work(of: attempt(kind, parameters)) != nil
      #expect(!isRead)
    }
  }

  @Test func eachKindNamesTheRecordingWhoseWaveformItWrites() {
    let job = attempt(.denoise).job
    #expect(WaveformJob.writtenRecording(of: job) == job.recording)
    #expect(DenoiseJob.writtenRecording(of: job) == job.output)
    #expect(ConvertJob.writtenRecording(of: job) == nil)
  }
}
