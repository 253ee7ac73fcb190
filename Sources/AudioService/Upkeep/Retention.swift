import Dispatch
import Storage
import Synchronization

/// Deletes recordings that have reached the configured age: at the start and then hourly, or more often if the age is
/// less than an hour. While the catalog's clock may be wrong, it deletes nothing.
///
/// The rows go first, in one transaction that skips recordings that a job works on; then the files. A crash in between
/// leaves folders that no row owns, which the next start removes.
final class Retention: Sendable {
  private let context: Context
  private let catalog: Catalog
  private let queue = DispatchQueue(label: "retention")
  private let isStopped = Atomic(false)

  /// Maximum number of rows deleted in one transaction, so that others can write in between.
  private static let batch = 100

  init(_ context: Context, _ catalog: Catalog) { (self.context, self.catalog) = (context, catalog) }

  /// If ages are configured, starts deleting old recordings, now and regularly.
  func start() {
    let ages = Array(ownAges.values) + [context.configuration.maximumAgeSeconds].compactMap { $0 }
    guard let least = ages.min() else { return }
    context.clock.async(on: queue) { [weak self] in self?.sweepAndGoOn(every: least) }
  }

  func stop() { isStopped.store(true, ordering: .relaxed) }

  private var ownAges: [Tenant: Double] { context.configuration.tenantMaximumAges }

  private func sweepAndGoOn(every age: Double) {
    guard !isStopped.load(ordering: .relaxed) else { return }
    do throws(StorageError) {
      if let now = try context.deletionClock.time() { sweepAll(at: now) }
    } catch {
      context.log.failure("old recordings could not be deleted", ["error": logText(error)])
    }
    context.clock.after(min(max(age, 1), 3600), on: queue) { [weak self] in self?.sweepAndGoOn(every: age) }
  }

  /// Deletes recordings that have reached their tenant's age, or else the age for all. Blocks.
  func sweepAll(at now: Timestamp) {
    func instant(_ age: Double) -> Timestamp { Timestamp(milliseconds: now.milliseconds - Int64(age * 1000)) }
    for (tenant, age) in ownAges { sweep(createdBefore: instant(age), of: tenant) }
    if let age = context.configuration.maximumAgeSeconds { sweep(createdBefore: instant(age)) }
  }

  /// Deletes a tenant's recordings created before `instant`, or those of all tenants without an age of their own, and
  /// returns how many. Blocks.
  @discardableResult
  func sweep(createdBefore instant: Timestamp, of tenant: Tenant? = nil) -> Int {
    var count = 0
    do {
      // A change that can't be recorded must not be made.
      if let audit, !AuditLog.waiting({ await audit.canWrite() }) {
        context.log.failure("old recordings could not be deleted", ["error": "the audit log can't be written"])
        return 0
      }
      var batch = Self.batch
      while true {
        let deleted: [Owned<Recording>]
        do throws(StorageError) {
          deleted = try context.blobs.makingRoom { () throws(StorageError) in
            try delete(createdBefore: instant, limit: batch, of: tenant)
          }
        } catch .diskFull where batch > 1 {
          // Fewer need less room.
          batch /= 2
          continue
        }
        for deletion in deleted { removeFiles(of: deletion.id) }
        count += deleted.count
        guard context.auditOutbox?.writeOut() ?? true else { break }
        if deleted.count < batch { break }
      }
    } catch {
      context.log.failure("old recordings could not be deleted", ["error": logText(error)])
    }
    if count > 0 { context.log.notice("deleted old recordings", ["recordings": "\(count)"]) }
    return count
  }

  private var audit: AuditLog? { context.access.audit }

  /// Deletes a batch of rows; with an audit log, in the same transaction as their lines.
  private func delete(
    createdBefore instant: Timestamp, limit: Int, of tenant: Tenant?
  ) throws(StorageError) -> [Owned<Recording>] {
    let trail =
      audit == nil
      ? nil : AuditTrail(isDueAtOnce: true) { [clock = context.clock] in Self.lines(about: $0, at: clock.time) }
    let result = AuditTrail.$current.withValue(trail) {
      Result { () throws(StorageError) in
        try catalog.deleteRecordings(createdBefore: instant, limit: limit, of: tenant, except: Set(ownAges.keys))
      }
    }
    return try result.get()
  }

  private static func lines(about changes: CatalogChanges, at time: Timestamp) -> [AuditEntry] {
    return changes.deleted.map { deletion in
      let entry = AuditEntry.newID()
      let line = AuditLine(
        time: time.rfc3339, action: "retention", entry: entry, id: deletion.id.text,
        tenant: deletion.tenant == .none ? nil : deletion.tenant.name)
      return AuditEntry(id: entry, line: line.text)
    }
  }

  private func removeFiles(of id: RecordingID) {
    do { try context.blobs.remove(id) } catch {
      context.log.failure("a folder could not be removed", ["recording": id.text, "error": logText(error)])
    }
  }
}
