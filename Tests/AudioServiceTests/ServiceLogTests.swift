import Glibc
import HTTP
import Logging
import Storage
import Synchronization
import Testing

@testable import AudioService

/// Keeps what is logged.
private final class Lines: Sendable {
  private let lines = Mutex<[String]>([])

  var all: [String] { lines.withLock { $0 } }
  func add(_ line: String) { lines.withLock { $0.append(line) } }
}

private struct LineHandler: LogHandler {
  let lines: Lines
  var logLevel = Logger.Level.info
  var metadata: Logger.Metadata = [:]

  init(_ lines: Lines) { self.lines = lines }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    lines.add("\(event.level) \(event.message): \(event.metadata?["error"] ?? "")")
  }
}

@Suite struct ServiceLogTests {
  private func logged(_ error: any Error) throws -> [String] {
    let lines = Lines()
    let log = ServiceLog(Logger(label: "test") { _ in LineHandler(lines) })
    log.answered(try HTTPRequest(method: .get, target: "/"), with: problem(for: error), for: error)
    return lines.all
  }

  @Test("an answer that is meant is no failure")
  func meant() throws {
    #expect(try logged(Problem(.serviceUnavailable, code: "converting", detail: "Ask again.")) == [])
    #expect(try logged(ServiceError.queueFull(limit: 1)) == [])
  }

  @Test(
    "a failure is logged in words",
    arguments: [
      (StorageError.io(operation: "rename", path: "/a/b", errno: EROFS), "/a/b: rename failed: Read-only file system"),
      (ServiceError.storage(.database(code: 778, message: "disk I/O error")), "SQLite says 778: disk I/O error"),
      (ServiceError.workerUnavailable(reason: "no spectrum came"), "no spectrum came"),
      (StorageError.diskFull, "the disk has no room"),
    ] as [(any Error, String)])
  func words(error: any Error, text: String) throws {
    #expect(try logged(error) == ["error a request failed: \(text)"])
  }
}
