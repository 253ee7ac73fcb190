import Denoise
import FoundationEssentials
import Glibc
import Workers

extension WorkerRequest {
  /// Does what the workers of a new recording and of previews do, with short noises in a temporary folder: reads
  /// requests, probes, builds a waveform, removes noise and encodes reports. What this loads and computes, copies of
  /// this process don't load and compute again, which would take longer than the work on a short recording. Starts no
  /// threads.
  package static func rehearse() throws(ProcessingError) {
    guard let folder = temporaryFolder() else { throw .system(operation: "create", path: "", errno: errno) }
    let (sound, pyramid, map) = (folder + "/sound.wav", folder + "/pyramid", folder + "/map")
    let (brief, cleaned) = (folder + "/brief.wav", folder + "/cleaned.wav")
    defer {
      for path in [sound, pyramid, map, brief, cleaned] { unsafe _ = unlink(path) }
      unsafe _ = rmdir(folder)
    }
    try? Data(noise(frames: 44_100)).write(to: URL(fileURLWithPath: sound))
    try? Data(noise(frames: 11_025)).write(to: URL(fileURLWithPath: brief))
    let waveform = WaveformWork(pyramid: pyramid, soundMap: map, findsNoiseRegions: true)
    let intake = IntakeWork(pyramid: pyramid, soundMap: map, labels: folder + "/labels")
    let parameters = DenoiseParameters(
      noise: .region(.init(start: 0, end: 0.1)), settings: DenoiseSettings(adaptation: .ifCertain), format: .wav)
    let preview = DenoiseWork(parameters, output: cleaned, window: TimeWindow(start: 0.1, end: 0.2), isDurable: false)
    let works: [(Work, String)] = [
      (.probe, sound), (.waveform(waveform), sound), (.intake(intake), sound), (.denoise(preview), brief),
    ]
    for (work, source) in works {
      let fence = WorkerFence(memoryBytes: 0, processorSeconds: 0, outputBytes: 0)
      let request = WorkerRequest(work, on: source, in: folder, fence: fence, threads: 1)
      let read = try? JSONDecoder().decode(WorkerRequest.self, from: Data(request.line()))
      _ = WorkerReport.failed(fence.memoryExhausted).line()
      let perform = try (read ?? request).begin()
      _ = try perform { _ = WorkerReport.progress($0).line() }.line()
    }
  }

  private static func temporaryFolder() -> String? {
    let parent = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    var path = Array((parent + "/stillwave-XXXXXX").utf8CString)
    guard unsafe mkdtemp(&path) != nil else { return nil }
    return String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// A WAV file of noise: 16 bits, 44,100 Hz, one channel.
  private static func noise(frames: Int) -> [UInt8] {
    let (rate, bytes) = (44_100, 2 * frames)
    func number(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> (8 * $0) & 0xFF) } }
    var file = Array("RIFF".utf8) + number(36 + bytes, 4) + Array("WAVEfmt ".utf8) + number(16, 4)
    file += number(1, 2) + number(1, 2) + number(rate, 4) + number(2 * rate, 4) + number(2, 2) + number(16, 2)
    file += Array("data".utf8) + number(bytes, 4)
    var state: UInt32 = 1
    for _ in 0..<bytes {
      state = state &* 1_664_525 &+ 1_013_904_223
      file.append(UInt8(state >> 24))
    }
    return file
  }
}
