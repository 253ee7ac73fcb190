import Foundation

/// The service under test: the real binary on a free port, with its own data folder, which is removed with it.
final class Server {
  let client: Client
  let processIdentifier: Int32
  private let process = Process()
  private let directory: String

  /// `log`: the file for the log at its default level; nil for only errors, which are printed.
  init(binary: String, directory: String, log: String? = nil, options: [String] = []) throws {
    self.directory = directory + "/data"
    process.executableURL = URL(fileURLWithPath: binary)
    // All benchmark clients have the same address.
    let common = ["serve", "--listen", "127.0.0.1:0", "--data", self.directory, "--max-connections-per-client", "8192"]
    process.arguments = common + options
    if let log {
      _ = FileManager.default.createFile(atPath: log, contents: nil)
      process.standardError = FileHandle(forWritingAtPath: log)
    } else {
      process.arguments? += ["--log-level", "error"]
    }
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    guard let text = line.split(separator: ":").last, let port = UInt16(text.filter(\.isNumber)) else {
      throw BenchmarkFailure(what: "the service did not start: \(line)")
    }
    client = Client(port: port)
    processIdentifier = process.processIdentifier
  }

  /// Waits for a job to end; returns the last Job.
  func finish(job: String) throws -> Client.Answer {
    while true {
      let answer = try client.get("/v1/jobs/\(job)?wait=10")
      switch answer.member("state") {
      case "succeeded": return answer
      case "queued", "running": continue
      case let state: throw BenchmarkFailure(what: "job \(job) ended as \(state ?? "nothing")")
      }
    }
  }

  /// With `keepingData`, the data folder stays for the caller.
  func stop(keepingData: Bool = false) {
    process.terminate()
    process.waitUntilExit()
    if !keepingData { try? FileManager.default.removeItem(atPath: directory) }
  }
}
