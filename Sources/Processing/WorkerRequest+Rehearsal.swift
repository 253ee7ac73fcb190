import FoundationEssentials
import Glibc

extension WorkerRequest {
  /// Does what a new recording's workers do, with a second of noise in a temporary folder: reads requests, probes,
  /// builds a waveform and encodes reports. What this loads and computes, copies of this process don't load and compute
  /// again, which would take longer than the work on a short recording. Starts no threads.
  package static func rehearse() throws(ProcessingError) {
    guard let folder = temporaryFolder() else { throw .system(operation: "create", path: "", errno: errno) }
    let (sound, pyramid, map) = (folder + "/sound.wav", folder + "/pyramid", folder + "/map")
    defer {
      for path in [sound, pyramid, map] { unsafe _ = unlink(path) }
      unsafe _ = rmdir(folder)
    }
    try? Data(noise()).write(to: URL(fileURLWithPath: sound))
    let waveform = WaveformWork(pyramid: pyramid, soundMap: map, findsNoiseRegions: true)
    let intake = IntakeWork(pyramid: pyramid, soundMap: map, labels: folder + "/labels")
    for work in [Work.probe, .waveform(waveform), .intake(intake)] {
      let fence = WorkerFence(memoryBytes: 0, processorSeconds: 0, outputBytes: 0)
      let request = WorkerRequest(work, on: sound, in: folder, fence: fence, threads: 1)
      let read = try? JSONDecoder().decode(WorkerRequest.self, from: Data(request.line()))
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

  /// A WAV file of a second of noise: 16 bits, 44,100 Hz, one channel.
  private static func noise() -> [UInt8] {
    let (rate, bytes) = (44_100, 88_200)
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
