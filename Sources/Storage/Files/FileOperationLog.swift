import Synchronization

/// Records the calls that decide what is left after a power cut, in the order in which they succeeded.
///
/// Tests of the order of writes set `current`; the service never does.
final class FileOperationLog: Sendable {
  enum Operation: Equatable {
    /// `fsync` of a file or a folder.
    case sync(String)
    case rename(String, to: String)
    case link(String, to: String)
  }

  @TaskLocal static var current: FileOperationLog?

  private let noted = Mutex<[Operation]>([])

  var operations: [Operation] { noted.withLock { $0 } }

  static func note(_ operation: @autoclosure () -> Operation) {
    guard let log = current else { return }
    let operation = operation()
    log.noted.withLock { $0.append(operation) }
  }
}
