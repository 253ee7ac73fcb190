import Foundation

/// How many short recordings the service takes in per second, compared with writing and syncing as many files, and how
/// long their waveforms take after that.
struct TinyUploads {
  let binary: String
  let folder: String

  private static let seconds = 5
  private static let connections = 32
  private static let rounds = 5
  /// 300 a second on a disk that takes 1,721 written and synced files a second.
  private static let goal = 300.0 / 1721

  private struct Figures {
    var uploads = 0.0
    /// Processor time of an upload with its waveform, in milliseconds: of the service and of its workers.
    var processor = 0.0
    var written = 0.0
    var delay = 0.0
    var p99 = 0.0

    var ratio: Double { uploads / written }
  }

  /// Prints a row per figure; returns how many missed their bound.
  func run() throws -> Int {
    guard Wrk.isInstalled else {
      throw BenchmarkFailure(what: "wrk is not installed; deploy/install bench installs it")
    }
    var table = Table(
      title: "\nRecordings of 16 KB, \(Self.connections) at a time (medians of \(Self.rounds), alternating, range)")
    var figures: [Figures] = []
    let place = folder + "/tiny"
    // In the end, because a file system may search longer for the place of a new file after many were removed.
    defer { try? FileManager.default.removeItem(atPath: place) }
    for round in 0..<Self.rounds {
      let folder = "\(place)/\(round)"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      figures.append(try measure(in: folder))
    }
    let ratio = median(figures.map(\.ratio))
    table.row(
      "recordings taken in / files written with fsync", spread(figures.map(\.ratio)),
      "goal ≥ \(rounded(Self.goal)) ×", ratio >= Self.goal)
    table.row("recordings taken in", range(figures.map(\.uploads), "/ s"), "", true)
    table.row("files of 16 KB written, each with fsync", range(figures.map(\.written), "/ s"), "", true)
    let delay = median(figures.map(\.delay))
    table.row(
      "until their waveforms are ready, in times of that", spread(figures.map(\.delay)), "goal ≤ 2 ×", delay <= 2)
    table.row("99th percentile of an upload's time", range(figures.map(\.p99), "ms"), "", true)
    table.row("CPU of an upload, with its waveform", range(figures.map(\.processor), "ms"), "", true)
    return table.failures
  }

  private func range(_ values: [Double], _ unit: String) -> String {
    "\(rounded(median(values))) \(unit) (\(rounded(values.min() ?? 0))–\(rounded(values.max() ?? 0)))"
  }

  private func measure(in folder: String) throws -> Figures {
    var figures = Figures()
    // Before and after, because the disk's speed drifts.
    let before = try writeAndSync(in: folder + "/before")
    let limits = ["--max-queued-jobs", "100000", "--max-queued-jobs-per-client", "100000"]
    let server = try Server(binary: binary, directory: folder, options: limits)
    defer { server.stop(keepingData: true) }
    // Loads the program before the clock starts.
    usleep(500_000)
    let used = Processes.processorSecondsWithEnded(server.processIdentifier)
    let clock = ContinuousClock.now
    let load = try Wrk(
      port: server.client.port, target: "/v1/recordings?name=short.wav", connections: Self.connections,
      seconds: Self.seconds, script: [try script(in: folder)])
    guard load.errors == 0 else { throw BenchmarkFailure(what: "\(load.errors) uploads were not answered 201") }
    let spent = ContinuousClock.now - clock
    for state in ["queued", "running"] {
      // Asked again and again, because nothing signals the last job's end.
      while try server.client.get("/v1/jobs?state=\(state)&limit=1").member("id") != nil { usleep(5000) }
    }
    figures.delay = (ContinuousClock.now - clock) / spent
    figures.uploads = load.requestsPerSecond
    figures.p99 = load.p99
    let processor = Processes.processorSecondsWithEnded(server.processIdentifier) - used
    figures.processor = processor * 1000 / load.requests
    figures.written = (before + (try writeAndSync(in: folder + "/after"))) / 2
    return figures
  }

  /// A script for wrk that uploads half a second of a rising tone.
  private func script(in folder: String) throws -> String {
    let path = "\(folder)/short.lua"
    try """
    local function number(value, count)
      local text = ""
      for _ = 1, count do
        text = text .. string.char(value % 256)
        value = math.floor(value / 256)
      end
      return text
    end
    local sound = {}
    for frame = 1, 8000 do
      sound[frame] = number(math.floor(8000 * math.sin(frame * frame * 1e-5)) % 65536, 2)
    end
    wrk.method = "POST"
    wrk.headers["Content-Type"] = "audio/wav"
    wrk.body = "RIFF" .. number(16036, 4) .. "WAVEfmt " .. number(16, 4) .. number(1, 2) .. number(1, 2)
      .. number(16000, 4) .. number(32000, 4) .. number(2, 2) .. number(16, 2) .. "data" .. number(16000, 4)
      .. table.concat(sound)
    """.write(toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  private func writeAndSync(in folder: String) throws -> Double {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let (count, bytes) = (1000, [UInt8](repeating: 1, count: 16_044))
    let clock = ContinuousClock.now
    for number in 0..<count {
      let path = "\(folder)/written-\(number)"
      let file = unsafe open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      guard unsafe write(file, bytes, bytes.count) == bytes.count, fsync(file) == 0 else {
        throw BenchmarkFailure(what: "can't write \(path)")
      }
      close(file)
    }
    return Double(count) / ((ContinuousClock.now - clock) / .seconds(1))
  }
}
