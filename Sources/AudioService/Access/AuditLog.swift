// The audit log: who changed what and who read whose audio, one JSON object per line:
//
//   {"action":"DELETE /v1/recordings/{id}","entry":"0199…","id":"0199…","key":"ci","location":"…",
//    "peer":"192.0.2.1:50312","request_id":"…","status":204,"tenant":"acme","time":"2026-11-21T04:05:06.789Z",
//    "token":"…"}
//
// `action` is the route, or “retention” for a recording deleted because of its age, `entry` the identifier of the line
// of a change, `id` what its path names, `location` what was created, `token` the ID of a token, `peer` the address of
// the client, as a trusted proxy names it if there is one. Empty members are left out. No line has a key, a token, a
// query, or a name that a client chose.
//
// The line of a change is on disk before its response is sent; that of a read is written before it, too, and on disk
// with the next change's. The transaction of a change also keeps its line in the catalog until it is in the log (see
// AuditTrail): if the service ends in between, the line is written later, without the status. It may then be there
// twice.
//
// Refused requests that change nothing aren't in it; the ordinary log has them. Nor are resumable uploads that are
// given up because the service can't read what was sent.

import Dispatch
import FoundationEssentials
import Glibc
import Storage
import Synchronization
import Terms

/// Writes the audit log.
final class AuditLog: Sendable {
  private struct Pending {
    let line: [UInt8]
    let isDurable: Bool
    let caller: CheckedContinuation<Bool, Never>
  }

  private struct State {
    var file: Int32
    var waiting: [Pending] = []
    var isBroken = false
  }

  /// The file's path.
  let path: String
  private let clock: Clock
  private let state: Mutex<State>
  private let queue = DispatchQueue(label: "audit log")

  /// Opens the file for appending, creating it readable only for its owner. Throws `KeyFileError.unreadable`.
  init(path: String, _ clock: Clock = .system) throws {
    (self.path, self.clock) = (path, clock)
    state = Mutex(State(file: try Self.open(path)))
  }

  deinit { close(state.withLock { $0.file }) }

  private static func open(_ path: String) throws -> Int32 {
    let isNew = unsafe access(path, F_OK) != 0
    // Opening a pipe without a reader would block.
    let file = unsafe Glibc.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o600)
    guard file >= 0, fcntl(file, F_SETFL, O_APPEND) == 0 else { throw KeyFileError.unreadable(errno: errno) }
    guard isNew else { return file }
    do throws(StorageError) {
      // The lines of a new file are on disk only with its name.
      try FileSystem.syncFolder(FileSystem.parent(of: path))
      return file
    } catch {
      close(file)
      guard case .io(_, _, let number) = error else { throw KeyFileError.unreadable(errno: EIO) }
      throw KeyFileError.unreadable(errno: number)
    }
  }

  /// Whether lines can be written, as far as is known: if the last one couldn't, opens the file again and tries one
  /// that says so.
  func canWrite() async -> Bool {
    guard state.withLock({ $0.isBroken }) else { return true }
    guard reopen() else { return false }
    let line = "{\"action\":\"audit log resumed\",\"time\":\"\(clock.time.rfc3339)\"}\n"
    return await write(Array(line.utf8), isDurable: true)
  }

  /// Opens the file again under its name, after it was renamed. Returns false, and keeps the old one, if that fails.
  func reopen() -> Bool {
    queue.sync {
      guard let file = try? Self.open(path) else { return false }
      let old = state.withLock { state in
        defer { (state.file, state.isBroken) = (file, false) }
        return state.file
      }
      fsync(old)
      close(old)
      return true
    }
  }

  /// Writes a line and, with `isDurable`, waits until it is on disk. Simultaneous callers share one write. Returns
  /// false if the disk fails.
  func write(_ line: [UInt8], isDurable: Bool) async -> Bool {
    await withCheckedContinuation { caller in
      let isFirst = state.withLock { state in
        state.waiting.append(Pending(line: line, isDurable: isDurable, caller: caller))
        return state.waiting.count == 1
      }
      if isFirst { queue.async { [self] in flush() } }
    }
  }

  /// Does the same with `isDurable`. Blocks.
  func writeAndWait(_ line: [UInt8]) -> Bool { Self.waiting { await self.write(line, isDurable: true) } }

  /// Waits for an asynchronous call that doesn't need this thread.
  static func waiting(_ call: @escaping @Sendable () async -> Bool) -> Bool {
    let answer = Answer()
    Task {
      answer.value.store(await call(), ordering: .sequentiallyConsistent)
      answer.isThere.signal()
    }
    answer.isThere.wait()
    return answer.value.load(ordering: .sequentiallyConsistent)
  }

  private final class Answer: Sendable {
    let value = Atomic(false)
    let isThere = DispatchSemaphore(value: 0)
  }

  private func flush() {
    let (pending, file) = state.withLock { state in
      defer { state.waiting = [] }
      return (state.waiting, state.file)
    }
    var isWritten = Self.append(Array(pending.map(\.line).joined()), to: file)
    if isWritten, pending.contains(where: \.isDurable) { isWritten = fdatasync(file) == 0 }
    state.withLock { [isWritten] in $0.isBroken = !isWritten }
    for one in pending { one.caller.resume(returning: isWritten) }
  }

  /// Writes all bytes, or truncates the file to what it had, so that it has only whole lines.
  private static func append(_ bytes: [UInt8], to file: Int32) -> Bool {
    let end = lseek(file, 0, SEEK_END)
    guard writeAll(bytes, to: file) != nil else { return true }
    _ = ftruncate(file, end)
    return false
  }
}

/// A line of the audit log.
struct AuditLine: Encodable {
  var time: String
  var action: String
  var entry: String?
  var id: String?
  var location: String?
  var tenant, key, token: String?
  var peer: String?
  var requestId: String?
  var status: Int?

  /// The line without its newline.
  var text: String {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? ""
  }
}
