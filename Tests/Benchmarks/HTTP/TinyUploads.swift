import Foundation

/// How many short recordings the service takes in per second, and how long their waveforms take after that.
struct TinyUploads {
  let binary: String
  let folder: String

  private static let seconds = 5
  private static let connections = 32
  private static let rounds = 5
  private static let goal = 300.0

  /// Adds a row per figure.
  func run(_ table: inout Table) throws {
    var (rates, delays): ([Double], [Double]) = ([], [])
    for _ in 0..<Self.rounds {
      let (rate, delay) = try measure()
      rates.append(rate)
      delays.append(delay)
    }
    table.row(
      "recordings of 16 KB taken in, \(Self.connections) at a time",
      "\(rounded(median(rates))) / s (\(rounded(rates.min() ?? 0))–\(rounded(rates.max() ?? 0)))",
      "goal ≥ \(Self.goal) / s", median(rates) >= Self.goal)
    table.row(
      "until their waveforms are ready, in times of that", "\(spread(delays))", "goal ≤ 2 ×", median(delays) <= 2)
    table.row("files of 16 KB written, each with fsync", "\(rounded(try writeAndSync())) / s", "", true)
  }

  private func measure() throws -> (rate: Double, delay: Double) {
    let limits = ["--max-queued-jobs", "100000", "--max-queued-jobs-per-client", "100000"]
    let server = try Server(binary: binary, directory: folder, options: limits)
    defer { server.stop() }
    let clock = ContinuousClock.now
    let load = try Wrk(
      port: server.client.port, target: "/v1/recordings?name=short.wav", connections: Self.connections,
      seconds: Self.seconds, script: [try script()])
    guard load.errors == 0 else { throw BenchmarkFailure(what: "\(load.errors) uploads were not answered 201") }
    let spent = ContinuousClock.now - clock
    for state in ["queued", "running"] {
      // Asked again and again, because nothing signals the last job's end.
      while try server.client.get("/v1/jobs?state=\(state)&limit=1").member("id") != nil { usleep(5000) }
    }
    return (load.requestsPerSecond, (ContinuousClock.now - clock) / spent)
  }

  /// A script for wrk that uploads half a second of a rising tone.
  private func script() throws -> String {
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

  private func writeAndSync() throws -> Double {
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
    let rate = Double(count) / ((ContinuousClock.now - clock) / .seconds(1))
    for number in 0..<count { unsafe unlink("\(folder)/written-\(number)") }
    return rate
  }
}
