import Synchronization
import Terms

/// What other processes that share the catalog have done.
package enum HeardFromOthers: Sendable {
  /// The changes of a transaction. Readers already see them, and the catalog has counted them.
  case changes(CatalogChanges)
  /// How far an attempt of another process has come.
  case progress(AttemptProgress)
  /// Anything may have changed: the feed begins, was interrupted, or had more to say than fits.
  case anything
}

/// Tells the other processes that share a catalog what this one changes, and hears what they change.
///
/// A process doesn't hear its own messages, unless it doesn't know whether they were sent: a commit that waits for a
/// standby may succeed after the call has given up.
final class CatalogFeed: Sendable {
  private let bus: any ChangeBus
  private let node: String
  /// Until when this process hears its own messages, too.
  private let doubtsUntil = Mutex<Clock.Instant?>(nil)
  private let clock: Clock

  /// How long the bus may be silent before everything that was read earlier counts as outdated, in seconds.
  static let silenceSeconds = 5.0

  init(_ bus: any ChangeBus, node: String, _ clock: Clock) { (self.bus, self.node, self.clock) = (bus, node, clock) }

  /// Whether changes may have gone unheard for too long.
  var isSilent: Bool { bus.secondsSinceHeard.map { $0 > Self.silenceSeconds } ?? true }

  /// Seconds since the bus last proved that it delivers; nil if it is disconnected.
  var secondsSinceHeard: Double? { bus.secondsSinceHeard }

  /// Announces the changes of a transaction, when it commits.
  func announce(_ changes: CatalogChanges, in session: any SQLSession) throws(StorageError) {
    for line in CatalogMessage.lines(changes, from: node, byteLimit: bus.byteLimit) {
      try bus.send(line, in: session)
    }
  }

  /// Makes this process hear its own messages for an hour.
  func doubtOwn() { doubtsUntil.withLock { $0 = clock.instant(after: 3600) } }

  private var doubtsOwn: Bool { doubtsUntil.withLock { $0.map { clock.now < $0 } ?? false } }

  /// Tells the others how far an attempt has come.
  func announce(_ progress: AttemptProgress) throws(StorageError) {
    try bus.send(CatalogMessage.progress(progress).line(from: node))
  }

  /// Calls `hear` with what others do, from now on.
  func listen(
    _ hear: @escaping @Sendable (HeardFromOthers) -> Void, onInterruption: @escaping @Sendable (String) -> Void
  ) {
    bus.listen { [weak self, node] event in
      switch event {
      case .connected: hear(.anything)
      case .disconnected(let reason): onInterruption(reason)
      case .message(let line):
        guard let (sender, message) = CatalogMessage.parse(line) else { return hear(.anything) }
        guard sender != node || self?.doubtsOwn ?? false else { return }
        switch message {
        case .changes(let changes): hear(.changes(changes))
        case .progress(let progress): hear(.progress(progress))
        case .much: hear(.anything)
        }
      }
    }
  }

  func stop() { bus.stopListening() }
}
