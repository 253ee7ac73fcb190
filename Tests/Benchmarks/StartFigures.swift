import Foundation
import Storage

/// Starts with many recordings: until the port answers, until the service is ready, and what it does afterwards.
struct StartFigures {
  let binary: String
  let folder: String

  private static let recordings = 100_000
  /// Recordings that share an audio file and a waveform: ext4 allows 65,000 names of a file.
  private static let names = 50_000
  private static let rounds = 5

  /// Prints a row per figure; returns how many missed their bound.
  func run() throws -> Int {
    let folder = folder + "/starts"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try fill(folder)
    let (small, large) = (folder + "/empty", folder)
    var (answers, readies, processors, later, peaks) = ([Double](), [Double](), [Double](), [Double](), [Double]())
    for round in 0...Self.rounds {
      let empty = try start(in: small, watching: 0.5)
      let full = try start(in: large, watching: round == 0 ? 0 : 10)
      // The first start gives the recordings their rows.
      if round == 0 { continue }
      answers.append(full.answer)
      readies.append(full.ready)
      processors.append(full.processor)
      later.append(full.later)
      peaks.append(Double(full.peak - empty.peak) / 1024)
    }
    var table = Table(title: "\nStart with \(Self.recordings) recordings (medians of \(Self.rounds), range)")
    table.row("until /healthz answers", range(answers, "s"), "goal ≤ 1 s", median(answers) <= 1)
    table.row("until /readyz is 200", range(readies, "s"), "", true)
    table.row("processor time until then", range(processors, "s"), "", true)
    table.row("processor time in the 10 s after", range(later, "s"), "≤ 1 s", median(later) <= 1)
    table.row("more memory at its peak than without recordings", range(peaks, "MB"), "≤ 20 MB", median(peaks) <= 20)
    return table.failures
  }

  private func range(_ values: [Double], _ unit: String) -> String {
    "\(rounded(median(values))) \(unit) (\(rounded(values.min() ?? 0))–\(rounded(values.max() ?? 0)))"
  }

  private struct Start {
    var answer = 0.0
    var ready = 0.0
    var processor = 0.0
    var later = 0.0
    /// In KB.
    var peak = 0
  }

  private func start(in folder: String, watching seconds: Double) throws -> Start {
    let port = try Client.freePort()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: binary)
    // Without comparisons of files, which begin a month after the recordings' creation.
    process.arguments = [
      "serve", "--listen", "127.0.0.1:\(port)", "--data", folder + "/data", "--log-level", "error",
      "--scrub-interval", "0",
    ]
    process.standardOutput = FileHandle.nullDevice
    let begin = ContinuousClock.now
    try process.run()
    let watch = MemoryWatch(of: process.processIdentifier)
    func wait(for target: String) throws -> Double {
      while (try? Client(port: port).get(target))?.status != 200 {
        guard process.isRunning else { throw BenchmarkFailure(what: "the service has ended") }
        usleep(1000)
      }
      return (ContinuousClock.now - begin) / .seconds(1)
    }
    var start = Start()
    start.answer = try wait(for: "/healthz")
    start.ready = try wait(for: "/readyz")
    start.processor = Processes.processorSeconds([process.processIdentifier])
    Thread.sleep(forTimeInterval: seconds)
    start.later = Processes.processorSeconds([process.processIdentifier]) - start.processor
    start.peak = watch.stop().service
    process.terminate()
    process.waitUntilExit()
    return start
  }

  /// Makes a data folder with one recording, and copies of its folder, which the next start takes in.
  private func fill(_ folder: String) throws {
    let short = folder + "/short.wav"
    try SyntheticRecording.write(seconds: 1, to: short)
    let server = try Server(binary: binary, directory: folder)
    let sound = [UInt8](try Data(contentsOf: URL(fileURLWithPath: short)))
    let answer = try server.client.send("POST", "/v1/recordings", length: Int64(sound.count)) { try $0(sound) }
    guard answer.status == 201, let text = answer.member("id"), let id = RecordingID(text),
      let job = answer.member("job")
    else {
      throw BenchmarkFailure(what: "the upload was answered \(answer.status)")
    }
    _ = try server.finish(job: job)
    server.stop(keepingData: true)
    let place = "\(folder)/data/recordings/"
    let files = try FileManager.default.contentsOfDirectory(atPath: place + text)
    guard let name = files.first(where: { ObjectKey(id, $0).descriptionVersion != nil }),
      let original = Recording(
        describedBy: [UInt8](try Data(contentsOf: URL(fileURLWithPath: place + text + "/" + name)))),
      let audio = original.audioKey?.name, let waveform = original.waveformKey?.name
    else { throw BenchmarkFailure(what: "the recording has no description") }
    var source = place + text
    for number in 1..<Self.recordings {
      let time = Timestamp(milliseconds: original.createdAt.milliseconds - Int64(number) * 1000)
      var copy = Recording(
        name: "take \(number).wav", createdAt: time, bytes: original.bytes, sha256: original.sha256,
        format: original.format, waveformState: .ready, waveformBytes: original.waveformBytes)
      copy.audioKey = ObjectKey(copy.id, audio)
      copy.waveformKey = ObjectKey(copy.id, waveform)
      let target = place + copy.id.text
      try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: false)
      try Data(copy.describedJSON).write(
        to: URL(fileURLWithPath: "\(place)\(copy.id.text)/\(copy.descriptionKey.name)"))
      for file in [audio, waveform] {
        if number % Self.names == 0 {
          try FileManager.default.copyItem(atPath: "\(source)/\(file)", toPath: "\(target)/\(file)")
        } else {
          try FileManager.default.linkItem(atPath: "\(source)/\(file)", toPath: "\(target)/\(file)")
        }
      }
      if number % Self.names == 0 { source = target }
    }
  }
}
