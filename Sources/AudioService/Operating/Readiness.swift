import Dispatch
import Glibc
import Storage
import Synchronization
import Terms

/// Checks whether the service can take work: files and the catalog can be written, the disk has space, and the program
/// that workers run exists.
///
/// A check costs durable writes, so at most one a second runs, on a thread of its own. Callers wait at most a second: a
/// check that hangs counts as “busy”.
final class Readiness: Sendable {
  /// The outcome of a check.
  enum Finding: Sendable, Equatable {
    case ready, diskIsFull
    /// Files can't be created, for example because the disk is read-only or the folder is gone.
    case diskFails(String)
    /// The bucket with the recordings can't be used.
    case mediaFail(String)
    case catalogFails(String)
    /// A check didn't finish in time: another program holds the catalog's lock, or the disk hangs.
    case catalogIsBusy
    /// A write of the service itself keeps all others waiting.
    case catalogIsHeld(HeldWrite)
    /// The catalog can't be read any more, and nothing is written to it.
    case catalogIsDamaged(String)
    /// The catalog's file or the folder's lock was removed or replaced, so anything written would be lost.
    case dataFolderIsReplaced(String)
    /// The program that workers run is missing.
    case programIsMissing(String)
    /// The service is about to stop.
    case isLeaving
  }

  private struct Known {
    var finding: Finding
    var at: Clock.Instant
  }

  private typealias Caller = CheckedContinuation<Finding, Never>

  private struct State {
    var isLeaving = false
    var known: Known?
    var isLooking = false
    /// The last finding that was noted.
    var noted = Finding.ready
    var callers: [UInt64: Caller] = [:]
    var nextKey: UInt64 = 0
  }

  private let look: @Sendable () -> Finding
  private let note: @Sendable (Finding) -> Void
  private let late: @Sendable () -> Finding
  private let patienceSeconds: Double
  private let validSeconds: Double
  private let clock: Clock
  private let state = Mutex(State())
  /// Both queues are serial, so that each gets a thread even when others' work has taken all threads that concurrent
  /// queues share.
  private let worker = DispatchQueue(label: "readiness")
  private let timers = DispatchQueue(label: "readiness timers")

  /// Creates a check from `look`, which blocks; callers wait for it no longer than `patienceSeconds`, and a finding is
  /// used for `validSeconds`. Calls `note` with each finding of another kind than the one before; before the first one,
  /// the service counts as ready. `late` returns what a check finds that takes too long.
  init(
    patienceSeconds: Double = 1, validSeconds: Double = 1, clock: Clock,
    note: @escaping @Sendable (Finding) -> Void = { _ in },
    late: @escaping @Sendable () -> Finding = { .catalogIsBusy }, _ look: @escaping @Sendable () -> Finding
  ) {
    (self.patienceSeconds, self.validSeconds, self.late) = (patienceSeconds, validSeconds, late)
    (self.note, self.look, self.clock) = (note, look, clock)
  }

  /// From now on, the finding is that the service is about to stop.
  func drain() { state.withLock { $0.isLeaving = true } }

  /// Returns the current finding.
  func finding() async -> Finding {
    await withCheckedContinuation { caller in
      let (known, key, starts) = state.withLock { state -> (Finding?, UInt64, Bool) in
        if state.isLeaving { return (.isLeaving, 0, false) }
        if let known = state.known, clock.seconds(since: known.at) < validSeconds { return (known.finding, 0, false) }
        defer { state.isLooking = true }
        state.nextKey += 1
        state.callers[state.nextKey] = caller
        return (nil, state.nextKey, !state.isLooking)
      }
      if let known { return caller.resume(returning: known) }
      clock.after(patienceSeconds, on: timers) { [weak self] in self?.losePatience(key) }
      if starts { clock.async(on: worker) { [self] in found(look(), hasEnded: true) } }
    }
  }

  /// Answers all waiting callers, and those of the next second, with “busy”.
  private func losePatience(_ key: UInt64) {
    guard state.withLock({ $0.callers[key] != nil }) else { return }
    found(late(), hasEnded: false)
  }

  private func found(_ finding: Finding, hasEnded: Bool) {
    let (callers, isNew) = state.withLock { state in
      if hasEnded { state.isLooking = false }
      state.known = Known(finding: finding, at: clock.now)
      let isNew = !finding.isLike(state.noted)
      state.noted = finding
      defer { state.callers = [:] }
      return (state.callers, isNew)
    }
    if isNew { note(finding) }
    for caller in callers.values { caller.resume(returning: finding) }
  }
}

extension Readiness.Finding {
  /// Whether other nodes would find the same, so that a balancer gains nothing by sending requests to them instead.
  /// `hasPeers` is whether there are other nodes, and `sharesDisk` whether files in progress are on a disk of all.
  func isCommon(hasPeers: Bool, sharesDisk: Bool) -> Bool {
    guard hasPeers else { return false }
    return switch self {
    case .mediaFail, .catalogFails, .catalogIsBusy, .catalogIsHeld, .catalogIsDamaged: true
    case .diskIsFull: sharesDisk
    // That the shared folder isn't there may be this machine's own trouble.
    case .ready, .diskFails, .dataFolderIsReplaced, .programIsMissing, .isLeaving: false
    }
  }

  /// Tries everything that uploads and jobs need. Blocks.
  init(_ configuration: Configuration, catalog: Catalog, media: MediaPlaces) {
    do {
      guard try media.scratch.freeBytes() > configuration.reservedDiskBytes else {
        self = .diskIsFull
        return
      }
      try media.checkDisk()
    } catch {
      self =
        switch error {
        case .diskFull: .diskIsFull
        case .claimLost: .dataFolderIsReplaced("\(error)")
        default: .diskFails("\(error)")
        }
      return
    }
    do { try media.bucket?.check() } catch {
      self = .mediaFail("\(error)")
      return
    }
    do { try catalog.check() } catch {
      self =
        switch error {
        case .diskFull: .diskIsFull
        case .database(let code, _) where code & 0xFF == Self.busy: .late(catalog)
        case .busy: .late(catalog)
        case .damagedCatalog(_, let detail): .catalogIsDamaged(detail)
        case .catalogReplaced: .dataFolderIsReplaced("\(error)")
        default: .catalogFails("\(error)")
        }
      return
    }
    self = Self.canRun(configuration.program) ? .ready : .programIsMissing(configuration.program)
  }

  /// Why a check of a catalog takes too long.
  static func late(_ catalog: Catalog) -> Self {
    catalog.writeWatch.current.map(Self.catalogIsHeld) ?? .catalogIsBusy
  }

  /// Whether both are of the same kind, maybe with other details.
  fileprivate func isLike(_ other: Self) -> Bool {
    switch (self, other) {
    case (.diskFails, .diskFails), (.mediaFail, .mediaFail), (.catalogFails, .catalogFails),
      (.catalogIsHeld, .catalogIsHeld), (.catalogIsDamaged, .catalogIsDamaged),
      (.dataFolderIsReplaced, .dataFolderIsReplaced):
      true
    default: self == other
    }
  }

  /// SQLITE_BUSY, the low byte of its extended codes.
  private static var busy: Int32 { 5 }

  private static func canRun(_ program: String) -> Bool {
    var status = stat()
    return unsafe stat(program, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && access(program, X_OK) == 0
  }
}
