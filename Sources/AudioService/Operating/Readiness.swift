import Dispatch
import Glibc
import Storage
import Synchronization

/// Whether the service can take work: files and the catalog can be written, the disk has room, and there is a program
/// to start workers from.
///
/// To know it costs durable writes. However often it is asked, it is looked up at most once a second, by one thread of
/// its own, and nobody waits longer than a second for it: a look that hangs is an answer too.
final class Readiness: Sendable {
  /// What there was to say at last.
  enum Finding: Sendable, Equatable {
    case ready, diskIsFull
    /// Files can't be made: a read-only disk, a folder that is gone.
    case diskFails(String)
    case catalogFails(String)
    /// Nothing came of a look in time: another program holds the catalog's lock, or the disk hangs.
    case catalogIsBusy
    /// The catalog can't be read any more, and nothing is written to it.
    case catalogIsDamaged(String)
    /// The catalog's file or the folder's lock was removed or replaced: what is written would be lost.
    case dataFolderIsReplaced(String)
    /// There is no program to start workers from.
    case programIsMissing(String)
  }

  private struct Known {
    var finding: Finding
    var at: ContinuousClock.Instant
  }

  private typealias Caller = CheckedContinuation<Finding, Never>

  private struct State {
    var known: Known?
    var isLooking = false
    var callers: [UInt64: Caller] = [:]
    var nextKey: UInt64 = 0
  }

  private let look: @Sendable () -> Finding
  private let patienceSeconds: Double
  private let state = Mutex(State())
  /// Serial, so that each has a thread although others' work may have taken all that concurrent queues share.
  private let worker = DispatchQueue(label: "readiness")
  private let timers = DispatchQueue(label: "readiness timers")

  /// `look` blocks; nobody waits for it longer than `patienceSeconds`.
  init(patienceSeconds: Double = 1, _ look: @escaping @Sendable () -> Finding) {
    self.patienceSeconds = patienceSeconds
    self.look = look
  }

  /// What holds now, or did less than a second ago.
  func finding() async -> Finding {
    await withCheckedContinuation { caller in
      let (known, key, starts) = state.withLock { state -> (Finding?, UInt64, Bool) in
        if let known = state.known, known.at + .seconds(1) > .now { return (known.finding, 0, false) }
        defer { state.isLooking = true }
        state.nextKey += 1
        state.callers[state.nextKey] = caller
        return (nil, state.nextKey, !state.isLooking)
      }
      if let known { return caller.resume(returning: known) }
      if starts { worker.async { [self] in found(look(), hasEnded: true) } }
      timers.asyncAfter(deadline: .now() + patienceSeconds) { [weak self] in self?.losePatience(key) }
    }
  }

  /// Whoever asks within the next second needs not wait anew.
  private func losePatience(_ key: UInt64) {
    guard state.withLock({ $0.callers[key] != nil }) else { return }
    found(.catalogIsBusy, hasEnded: false)
  }

  private func found(_ finding: Finding, hasEnded: Bool) {
    let callers = state.withLock { state in
      if hasEnded { state.isLooking = false }
      state.known = Known(finding: finding, at: .now)
      defer { state.callers = [:] }
      return state.callers
    }
    for caller in callers.values { caller.resume(returning: finding) }
  }
}

extension Readiness.Finding {
  /// Tries what uploads and jobs need. Blocks.
  init(_ configuration: Configuration, catalog: Catalog, store: MediaStore) {
    do {
      guard try store.freeBytes() > configuration.reservedDiskBytes else {
        self = .diskIsFull
        return
      }
      try store.checkClaim()
      try store.check()
    } catch {
      self =
        switch error {
        case .diskFull: .diskIsFull
        case .claimLost: .dataFolderIsReplaced("\(error)")
        default: .diskFails("\(error)")
        }
      return
    }
    do { try catalog.check() } catch {
      self =
        switch error {
        case .diskFull: .diskIsFull
        case .database(let code, _) where code & 0xFF == Self.busy: .catalogIsBusy
        case .damagedCatalog(_, let detail): .catalogIsDamaged(detail)
        case .catalogReplaced: .dataFolderIsReplaced("\(error)")
        default: .catalogFails("\(error)")
        }
      return
    }
    self = Self.canRun(configuration.program) ? .ready : .programIsMissing(configuration.program)
  }

  /// SQLITE_BUSY, the low byte of its extended codes.
  private static var busy: Int32 { 5 }

  private static func canRun(_ program: String) -> Bool {
    var status = stat()
    return unsafe stat(program, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(program, X_OK) == 0
  }
}
