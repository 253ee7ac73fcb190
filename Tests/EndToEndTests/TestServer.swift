import Foundation
import Testing

/// The real program, serving on a port chosen by the system, with its own data folder. It's killed when the test
/// releases it, however the test ends.
final class TestServer {
  let folder: TemporaryFolder
  let data: String
  private var arguments: [String]
  /// A command that starts the program, if any.
  private let starter: [String]
  private let program: String
  private(set) var command: Command
  private(set) var client: HTTPClient

  convenience init(
    _ arguments: String..., dataDirectory: String? = nil, under starter: [String] = [], program: String? = nil
  ) throws {
    try self.init(with: arguments, dataDirectory: dataDirectory, under: starter, program: program)
  }

  init(with arguments: [String], dataDirectory: String? = nil, under starter: [String] = [], program: String? = nil)
    throws
  {
    folder = try TemporaryFolder()
    data = dataDirectory ?? folder.file("data")
    self.arguments = arguments
    self.starter = starter
    self.program = try program ?? Program.path()
    (command, client) = try Self.start(self.program, data: data, arguments, under: starter)
  }

  private var isKilled = false

  /// Whether the test ends workers by signals. Otherwise, one that a signal has ended is a failure.
  var losesWorkers = false

  deinit {
    tellOfItsOwnEnd()
    command.signal(SIGKILL)
  }

  /// If the service ended by itself, records that as a failure: otherwise a test would report only refused connections.
  private func tellOfItsOwnEnd() {
    tellOfLostWorkers()
    guard !isKilled, !command.isRunning, let finished = try? command.finish(), finished.status != 0 else { return }
    Issue.record("the service ended by itself, with status \(finished.status): \(finished.errors.suffix(2000))")
  }

  private func tellOfLostWorkers() {
    guard !losesWorkers, let errors = try? contents(command.folder.file("errors")) else { return }
    let line = String(decoding: errors, as: UTF8.self).split(separator: "\n")
      .first { $0.contains("a worker was ended by a signal that the service didn't send") }
    if let line { Issue.record("\(line)") }
    // Once is enough.
    losesWorkers = line != nil
  }

  var processID: pid_t { command.processID }

  /// The address is in the first line of standard output.
  private static func start(
    _ program: String, data: String, _ arguments: [String], under starter: [String]
  ) throws -> (Command, HTTPClient) {
    let words = starter + [program, "serve", "--listen", "127.0.0.1:0", "--data", data] + arguments
    let command = try Command(words[0], Array(words.dropFirst()))
    let opening = "Stillwave listens on http://127.0.0.1:"
    let isListening = try eventually { try command.output().hasSuffix("\n") || !command.isRunning }
    let line = try command.output()
    guard isListening, line.hasPrefix(opening), let port = UInt16(line.dropFirst(opening.count).dropLast()) else {
      command.signal(SIGKILL)
      throw ToolFailure(description: "the service did not start: \(line) \(try command.finish().errors)")
    }
    return (command, HTTPClient(port: port))
  }

  /// Sends SIGTERM; expects that the service ends with status 0.
  func stop() throws {
    command.signal(SIGTERM)
    let finished = try command.finish()
    #expect(finished.status == 0, "\(finished.errors)")
  }

  /// Sends SIGKILL: the next start finds what a crash or a power cut leaves. The data folder's lock is free once the
  /// process is gone.
  func crash() throws {
    kill()
    _ = try command.finish()
  }

  /// Sends a signal that ends the service because of a fault in its code; returns what it wrote.
  func crash(by signal: Int32) throws -> Command.Finished {
    tellOfItsOwnEnd()
    isKilled = true
    command.signal(signal)
    return try command.finish()
  }

  /// Restarts with the same arguments unless others are given.
  func restart(_ others: String...) throws {
    if !others.isEmpty { arguments = others }
    (command, client) = try Self.start(program, data: data, arguments, under: starter)
    isKilled = false
  }

  /// Sends SIGKILL, if the service isn't used any more.
  func kill() {
    tellOfItsOwnEnd()
    isKilled = true
    command.signal(SIGKILL)
  }

  /// The children that currently work.
  func workers() -> [pid_t] { children(named: "stillwave worker ") }

  /// The child that becomes workers by copying itself.
  func template() -> pid_t? { children(named: "stillwave worker-template ").first }

  private func children(named words: String) -> [pid_t] {
    Processes.children(of: processID).filter { Processes.commandLine(of: $0).hasPrefix(words) }
  }

  /// Freezes the workers during `body`, so that a test with little processor time sees all of their work in small
  /// steps.
  func holdingWorkers<Value>(_ body: () throws -> Value) rethrows -> Value {
    let held = workers()
    for worker in held { _ = Glibc.kill(worker, SIGSTOP) }
    defer { for worker in held { _ = Glibc.kill(worker, SIGCONT) } }
    return try body()
  }

  // MARK: Files on disk

  /// Every file and folder in the data directory that is not the catalog's own, by path within it.
  func leftovers() throws -> [String] {
    let own = ["incoming", "uploads", "recordings", "jobs", "removed", "orphaned", "lock", "reserve"]
    return try FileManager.default.subpathsOfDirectory(atPath: data)
      .filter { !own.contains($0) && !$0.hasPrefix("catalog.sqlite") && !isSpareFolder($0) }.sorted()
  }

  /// Whether this is a folder that waits, empty, for the next short upload.
  private func isSpareFolder(_ path: String) -> Bool {
    path.hasPrefix("incoming/") && path.hasSuffix(".work")
      && (try? FileManager.default.contentsOfDirectory(atPath: "\(data)/\(path)")) == []
  }

  /// Expects no part of an upload, no folder, and no recording. Finished jobs stay listed; `jobs` is their number.
  func expectNothingKept(
    jobs: Int? = 0, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let isEmpty = try eventually { try leftovers().isEmpty }
    #expect(isEmpty, comment, sourceLocation: sourceLocation)
    #expect(try leftovers() == [], comment, sourceLocation: sourceLocation)
    let list = try client.get("/v1/recordings")
    #expect(list.json["recordings"].array?.count == 0, comment, sourceLocation: sourceLocation)
    guard let jobs else { return }
    #expect(try client.get("/v1/jobs").json["jobs"].array?.count == jobs, comment, sourceLocation: sourceLocation)
  }
}
