import Dispatch
import Storage
import Synchronization

/// Deletes recordings that have reached the configured age: at the start and then hourly, or more often if the age is
/// less than an hour.
///
/// The rows go first, in one transaction that skips recordings that a job works on; then the files. A crash in between
/// leaves folders that no row owns, which the next start removes.
final class Retention: Sendable {
  private let context: Context
  private let queue = DispatchQueue(label: "retention")
  private let isStopped = Atomic(false)

  /// Maximum number of rows deleted in one transaction, so that others can write in between.
  private static let batch = 100

  init(_ context: Context) { self.context = context }

  /// If an age is configured, starts deleting old recordings, now and regularly.
  func start() {
    guard let age = context.configuration.maximumAgeSeconds else { return }
    queue.async { [weak self] in self?.sweepAndGoOn(age) }
  }

  func stop() { isStopped.store(true, ordering: .relaxed) }

  private func sweepAndGoOn(_ age: Double) {
    guard !isStopped.load(ordering: .relaxed) else { return }
    sweep(createdBefore: Timestamp(milliseconds: Timestamp.now.milliseconds - Int64(age * 1000)))
    queue.asyncAfter(deadline: .now() + min(max(age, 1), 3600)) { [weak self] in self?.sweepAndGoOn(age) }
  }

  /// Deletes recordings created before `instant`, and returns how many. Blocks.
  @discardableResult
  func sweep(createdBefore instant: Timestamp) -> Int {
    var count = 0
    do {
      try context.store.checkRemoving()
      while true {
        let deleted = try context.catalog.deleteRecordings(createdBefore: instant, limit: Self.batch)
        for id in deleted { removeFiles(of: id) }
        count += deleted.count
        if deleted.count < Self.batch { break }
      }
    } catch {
      context.log.failure("old recordings could not be deleted", ["error": logText(error)])
    }
    if count > 0 { context.log.notice("deleted old recordings", ["recordings": "\(count)"]) }
    return count
  }

  private func removeFiles(of id: RecordingID) {
    context.waveforms.close(id)
    do { try context.store.remove(id) } catch {
      context.log.failure("a folder could not be removed", ["recording": id.text, "error": logText(error)])
    }
  }
}
