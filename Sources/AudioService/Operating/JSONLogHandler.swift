import CLinux
import FoundationEssentials
import HTTP
import Logging
import Storage
import Terms

/// Writes each entry as one line of JSON to standard error, on a thread of its own.
package struct JSONLogHandler: LogHandler {
  /// The lowest level that is written.
  package var logLevel: Logger.Level = .info
  /// Metadata added to every line.
  package var metadata: Logger.Metadata = [:]
  private let label: String

  /// Creates a handler for the logger `label`.
  package init(label: String) { self.label = label }

  /// Accesses one member of the metadata.
  package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  /// Numbers stay numbers; anything else becomes text.
  private enum Member: Encodable, Sendable {
    case text(String)
    case number(Double)

    init(_ value: Logger.MetadataValue) {
      if case .stringConvertible(let number) = value, let number = Double("\(number)") {
        self = .number(number)
      } else {
        self = .text("\(value)")
      }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .text(let text): try container.encode(text)
      case .number(let number): try container.encode(number)
      }
    }
  }

  /// The log is the process's, whatever services it has.
  private static let clock = Clock.system

  /// Writes the line of a request. Never blocks.
  @Sendable package static func request(_ record: RequestRecord) {
    LogWriter.standardError.write(RequestLine.bytes(record, at: clock.time))
  }

  /// From now on, a crash of the process waits until the lines before it are written, at most a second.
  package static func finishAtCrash() { stillwave_finish_log_at_crash() }

  /// Returns when all lines are written, or after `seconds`. Call it before the process exits.
  package static func flush(within seconds: Double) { LogWriter.standardError.flush(within: seconds) }

  /// Writes a line soon. Never blocks.
  package func log(event: LogEvent) {
    let metadata = metadata.merging(event.metadata ?? [:], uniquingKeysWith: { $1 })
    let line = Self.line(at: Self.clock.time, event.level, "\(event.message)", metadata)
    LogWriter.standardError.write(line, isUrgent: event.level > .info)
  }

  /// Returns an entry's line, with its newline.
  static func line(
    at time: Timestamp, _ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata
  ) -> [UInt8] {
    var members: [String: Member] = [
      "time": .text(time.rfc3339), "level": .text(level.rawValue), "message": .text(message),
    ]
    for (key, value) in metadata where "\(value)" != "" { members[key] = Member(value) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let line = try? encoder.encode(members) else { return [] }
    return Array(line) + [UInt8(ascii: "\n")]
  }
}
