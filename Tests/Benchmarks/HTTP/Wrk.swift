import Foundation

/// A load from wrk, and what it did.
struct Wrk {
  var requestsPerSecond = 0.0
  var bytesPerSecond = 0.0
  var requests = 0.0
  /// The 99th percentile of the latency, in milliseconds.
  var p99 = 0.0
  /// Requests that were not answered 2xx or 3xx, and connections that failed.
  var errors = 0.0

  static var isInstalled: Bool { FileManager.default.isExecutableFile(atPath: "/usr/bin/wrk") }

  init(port: UInt16, target: String, connections: Int, seconds: Int, fields: [String] = []) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/wrk")
    process.arguments =
      ["-t2", "-c\(connections)", "-d\(seconds)s", "--timeout", "10s", "--latency"]
      + fields.flatMap { ["-H", $0] } + ["http://127.0.0.1:\(port)\(target)"]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      if line.contains("Requests/sec:") { requestsPerSecond = Double(words[1]) ?? 0 }
      if line.contains("Transfer/sec:") { bytesPerSecond = Self.bytes(words[1]) }
      if line.contains(" requests in ") { requests = Double(words[0]) ?? 0 }
      if words.first == "99%" { p99 = Self.milliseconds(words[1]) }
      if line.contains("Non-2xx") { errors += Double(words.last ?? "") ?? 1 }
      if line.contains("Socket errors:") {
        errors += words.compactMap { Double($0.filter(\.isNumber)) }.reduce(0, +)
      }
    }
    guard requestsPerSecond > 0 else { throw BenchmarkFailure(what: "wrk said: \(text)") }
  }

  private static func milliseconds(_ text: Substring) -> Double {
    let units = [("us", 0.001), ("ms", 1), ("s", 1000), ("m", 60_000)]
    guard let (unit, factor) = units.first(where: { text.hasSuffix($0.0) }) else { return 0 }
    return (Double(text.dropLast(unit.count)) ?? 0) * factor
  }

  private static func bytes(_ text: Substring) -> Double {
    let units = [("KB", 1024.0), ("MB", 1_048_576), ("GB", 1_073_741_824), ("B", 1)]
    guard let (unit, factor) = units.first(where: { text.hasSuffix($0.0) }) else { return 0 }
    return (Double(text.dropLast(unit.count)) ?? 0) * factor
  }
}
