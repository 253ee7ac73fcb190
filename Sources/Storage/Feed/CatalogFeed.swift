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
final class CatalogFeed: Sendable {
  private let bus: any ChangeBus
  private let node: String

  /// How long the bus may be silent before everything that was read earlier counts as outdated, in seconds.
  static let silenceSeconds = 5.0

  init(_ bus: any ChangeBus, node: String) { (self.bus, self.node) = (bus, node) }

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

  /// Tells the others how far an attempt has come.
  func announce(_ progress: AttemptProgress) throws(StorageError) {
    try bus.send(CatalogMessage.progress(progress).line(from: node))
  }

  /// Calls `hear` with what others do, from now on.
  func listen(
    _ hear: @escaping @Sendable (HeardFromOthers) -> Void, onInterruption: @escaping @Sendable (String) -> Void
  ) {
    bus.listen { [node] event in
      switch event {
      case .connected: hear(.anything)
      case .disconnected(let reason): onInterruption(reason)
      case .message(let line):
        guard let (sender, message) = CatalogMessage.parse(line) else { return hear(.anything) }
        guard sender != node else { return }
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
