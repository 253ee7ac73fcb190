import Logging
import Synchronization

/// Records log entries, one line each: the level, the message, and the error if there is one.
final class LoggedLines: Sendable {
  private let lines = Mutex<[String]>([])

  var all: [String] { lines.withLock { $0 } }
  /// The entries at level error.
  var failures: [String] { all.filter { $0.hasPrefix("error ") } }

  var logger: Logger { Logger(label: "test") { _ in Handler(lines: self) } }

  private func add(_ line: String) { lines.withLock { $0.append(line) } }

  private struct Handler: LogHandler {
    let lines: LoggedLines
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]

    init(lines: LoggedLines) { self.lines = lines }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      lines.add("\(event.level) \(event.message): \(event.metadata?["error"] ?? event.metadata?["outcome"] ?? "")")
    }
  }
}
