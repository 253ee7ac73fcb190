import Dispatch
import Storage
import Synchronization

/// Writes the audit log's lines that wait in the catalog, and deletes those that were written.
///
/// A request writes its own line before it is answered. What a crash has left is written at the start; where several
/// nodes share the catalog, any of them writes what is overdue.
final class AuditOutbox: Sendable {
  private let audit: AuditLog
  private let catalog: Catalog
  private let log: ServiceLog
  private let queue = DispatchQueue(label: "audit outbox")
  private let written = Mutex<[String]>([])
  private let isStopped = Atomic(false)

  /// Seconds between two looks for overdue lines.
  private static let interval = 60.0

  init(_ audit: AuditLog, _ catalog: Catalog, _ log: ServiceLog) {
    (self.audit, self.catalog, self.log) = (audit, catalog, log)
  }

  /// Writes the lines that an earlier run left, and then overdue lines at regular intervals.
  func start() {
    catalog.clock.async(on: queue) { [weak self] in
      guard let self else { return }
      writeOut(all: !catalog.isShared)
      goOn()
    }
  }

  private func goOn() {
    catalog.clock.after(Self.interval, on: queue) { [weak self] in
      guard let self, !isStopped.load(ordering: .relaxed) else { return }
      writeOut()
      goOn()
    }
  }

  /// Deletes what was written. No line may be written out afterward.
  func stop() {
    isStopped.store(true, ordering: .relaxed)
    queue.sync { forgetWritten() }
  }

  /// Writes the lines that are due to the log, or with `all` any, and deletes them. Returns false if that fails.
  /// Blocks.
  @discardableResult
  func writeOut(all: Bool = false) -> Bool {
    do throws(StorageError) {
      while true {
        let entries = try catalog.takeAuditLines(all: all)
        guard !entries.isEmpty else { return true }
        guard audit.writeAndWait(entries.flatMap { Array($0.line.utf8) + [UInt8(ascii: "\n")] }) else {
          log.failure("the audit log could not be written", ["file": audit.path])
          return false
        }
        try catalog.forgetAuditLines(entries.map(\.id))
        // All that were there at the start were taken at once.
        if all, entries.count < 500 { return true }
      }
    } catch {
      log.failure("lines of the audit log could not be taken from the catalog", ["error": logText(error)])
      return false
    }
  }

  /// Deletes a line soon: it was written, or belongs to a request that was refused.
  func forget(_ id: String) {
    let isFirst = written.withLock { ids in
      ids.append(id)
      return ids.count == 1
    }
    if isFirst { catalog.clock.after(1, on: queue) { [weak self] in self?.forgetWritten() } }
  }

  private func forgetWritten() {
    let ids = written.withLock { ids in
      defer { ids = [] }
      return ids
    }
    guard !ids.isEmpty else { return }
    do { try catalog.forgetAuditLines(ids) } catch {
      log.failure("lines of the audit log will be written twice", ["error": logText(error)])
    }
  }
}
