import Dispatch
import Storage
import Synchronization
import Terms

/// Looks if a store works, in the background, one look at a time: those that ask wait only briefly, however long the
/// store takes. Thread-safe.
///
/// A look reads the bucket's identity, with as much patience as any request has. If the bucket was full, the look also
/// puts an object and removes it again.
final class StoreProbe: Sendable {
  private final class Look: Sendable {
    let group = DispatchGroup()
    let failure = Mutex<StorageError?>(nil)
  }

  private struct State {
    var current: Look?
    /// Since when no look has succeeded: the start of the first that failed or hasn't ended.
    var troubleSince: Clock.Instant?
    var lastFailure: StorageError?
  }

  /// How long after trouble began the store counts as unusable, in seconds: one lost request is no reason to take a
  /// node out of service, and every node has the same store.
  private static let patienceSeconds = 4.0
  /// The length of the object that is put into a bucket that was full, in bytes.
  private static let roomBytes = 1 << 20

  private let client: S3Client
  /// The client whose requests fail meanwhile.
  private let users: S3Client
  private let identity: BucketIdentity?
  private let catalog: Catalog
  /// Always the same, so that its row is one.
  private let object: UploadObject
  private let state = Mutex(State())
  /// Serial, so that it gets a thread even when others' work has taken all threads that concurrent queues share.
  private let queue = DispatchQueue(label: "store probe")

  /// Looks with `client` on behalf of `users`. Without an identity, any bucket will do.
  init(_ client: S3Client, for users: S3Client, identity: BucketIdentity?, catalog: Catalog) {
    (self.client, self.users, self.identity, self.catalog) = (client, users, identity, catalog)
    object = UploadObject(of: UploadID(at: catalog.time), start: 0, bytes: Int64(Self.roomBytes))
  }

  /// Throws if nothing could be read for some seconds, or if the store refuses requests. Blocks for less than a second.
  func checkUsable() throws(StorageError) {
    let failure = outcome(withinSeconds: 0.7)
    if failure == .storeFull { return }
    if let failure, !failure.isTransient { throw failure }
    let (since, last) = state.withLock { ($0.troubleSince, $0.lastFailure) }
    guard let since, client.clock.seconds(since: since) >= Self.patienceSeconds else { return }
    throw last ?? .storeUnreachable(detail: "\(S3Error.timedOut)")
  }

  /// Throws unless a look succeeds soon. Blocks for at most a second.
  func checkNow() throws(StorageError) {
    if let failure = outcome(withinSeconds: 1) { throw failure }
  }

  /// Returns why the look that is in progress, or begins now, hasn't succeeded in time; nil if it has.
  private func outcome(withinSeconds seconds: Double) -> StorageError? {
    let (look, isNew) = state.withLock { state -> (Look, Bool) in
      if let current = state.current { return (current, false) }
      let look = Look()
      look.group.enter()
      state.current = look
      if state.troubleSince == nil { state.troubleSince = client.clock.now }
      return (look, true)
    }
    if isNew { client.clock.async(on: queue) { [self] in end(look, self.look()) } }
    guard client.clock.wait(for: look.group, seconds: seconds) else {
      return .storeUnreachable(detail: "\(S3Error.timedOut)")
    }
    return look.failure.withLock { $0 }
  }

  private func end(_ look: Look, _ failure: StorageError?) {
    look.failure.withLock { $0 = failure }
    state.withLock { state in
      (state.current, state.lastFailure) = (nil, failure)
      if failure == nil || failure == .storeFull { state.troubleSince = nil }
    }
    if failure == nil { users.noteRecovery() }
    look.group.leave()
  }

  private func look() -> StorageError? {
    do throws(StorageError) {
      if let identity { try identity.check(by: client) } else { try readAnything() }
      if users.isFull { try putSomething() }
      return nil
    } catch {
      return error
    }
  }

  private func readAnything() throws(StorageError) {
    try StorageError.translating { () throws(S3Error) in
      do throws(S3Error) { _ = try client.get(BucketIdentity.key, 0..<1) } catch {
        if error != .noSuchKey { throw error }
      }
    }
  }

  private func putSomething() throws(StorageError) {
    try catalog.announce([object])
    try StorageError.translating { () throws(S3Error) in
      try client.put([UInt8](repeating: 0, count: Self.roomBytes), as: object.key)
      try? client.delete(object.key)
    }
    users.noteRoom()
  }
}
