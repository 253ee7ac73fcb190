import Dispatch
import Jobs
import Storage
import Synchronization

/// Creates resumable uploads, hands out one session for each, and removes them when they expire.
final class UploadSessionTable: Sendable {
  private struct Entry {
    let session: UploadSession
    var users = 0
  }

  /// Unused sessions are closed while there are more sessions than this. An open one holds a file, but saves the next
  /// request a query and finishing a second hash pass.
  private static let idleLimit = 64

  private let dependencies: UploadSession.Dependencies
  private let work: WorkQueue
  private let log: ServiceLog
  private let entries = Mutex<[UploadID: Entry]>([:])

  init(_ dependencies: UploadSession.Dependencies, work: WorkQueue, log: ServiceLog) {
    (self.dependencies, self.work, self.log) = (dependencies, work, log)
  }

  /// Creates an empty upload of `length` bytes. It's durable on return.
  ///
  /// If the limit of unfinished uploads is reached, an empty one is removed: the oldest of the client that has the most
  /// of them, if that is more than this client has. Throws `.tooManyUploads` if there is none, and
  /// `.tooManyUploadsOfClient`.
  func create(length: Int64, metadata: String?, for client: Client) async throws -> UploadID {
    do { return try await insert(length: length, metadata: metadata, for: client) } catch StorageError.tooManyUploads {
      guard try await makeRoom(for: client) else { throw StorageError.tooManyUploads(limit: limits.total) }
      return try await insert(length: length, metadata: metadata, for: client)
    }
  }

  private var limits: UploadLimits {
    UploadLimits(
      total: dependencies.configuration.maximumOpenUploads,
      perClient: dependencies.configuration.maximumOpenUploadsPerClient)
  }

  /// Removing an empty upload loses only its address, which gets 404 from then on.
  private func makeRoom(for client: Client) async throws -> Bool {
    let dependencies = dependencies
    let candidates = try await work.run { () throws(StorageError) in
      try dependencies.catalog.emptyUploads(givingWayTo: client.key)
    }
    for id in candidates where !isUsed(id) {
      if try await using(id, { try await $0.removeIfEmpty() }) { return true }
    }
    return false
  }

  private func insert(length: Int64, metadata: String?, for client: Client) async throws -> UploadID {
    let (dependencies, limits) = (dependencies, limits)
    return try await work.run { () throws(StorageError) in
      let upload = Upload(
        length: length, metadata: metadata, expiresAt: dependencies.emptyExpiry(from: .now), client: client.key)
      // The part comes first: a row without one would look as if its bytes were lost.
      _ = try dependencies.store.makePart(of: upload.id)
      do throws(StorageError) {
        try dependencies.catalog.insert(upload, limits: limits)
      } catch {
        dependencies.store.removePart(of: upload.id)
        throw error
      }
      return upload.id
    }
  }

  /// Calls `body` with the upload's session, which all concurrent callers share.
  func using<R>(_ id: UploadID, _ body: (UploadSession) async throws -> R) async throws -> R {
    let session = take(id)
    defer { give(session) }
    return try await body(session)
  }

  private func take(_ id: UploadID) -> UploadSession {
    let dependencies = dependencies
    return entries.withLock { entries in
      var entry = entries[id] ?? Entry(session: UploadSession(id, dependencies))
      entry.users += 1
      entries[id] = entry
      return entry.session
    }
  }

  private func give(_ session: UploadSession) {
    // Released outside the lock, because closing a file may take a while.
    let dropped = entries.withLock { entries -> UploadSession? in
      entries[session.id]?.users -= 1
      guard entries[session.id]?.users == 0 else { return nil }
      if session.isSpent { return entries.removeValue(forKey: session.id)?.session }
      guard entries.count > Self.idleLimit else { return nil }
      return entries.first { $0.value.users == 0 }.flatMap { entries.removeValue(forKey: $0.key)?.session }
    }
    withExtendedLifetime(dropped) {}
  }

  // MARK: Giving up

  /// Removes uploads that expired before `now` and have no request in progress, and answers too old to be repeated.
  func removeExpired(now: Timestamp = .now) async {
    let dependencies = dependencies
    var expired: [UploadID] = []
    do {
      expired = try await work.run { () throws(StorageError) in
        try dependencies.catalog.removeAnswers(before: IdempotencyKeys.oldest(at: now))
        return try dependencies.catalog.uploads(expiredBefore: now)
      }
    } catch {
      log.failure("expired uploads could not be listed", ["error": logText(error)])
    }
    for id in expired where !isUsed(id) {
      do { try await using(id) { try await $0.remove(ifExpiredBefore: now) } } catch {
        // One whose file can't be removed must not keep the others.
        log.failure("an expired upload could not be removed", ["upload": id.text, "error": logText(error)])
      }
    }
  }

  private func isUsed(_ id: UploadID) -> Bool { entries.withLock { $0[id].map { $0.users > 0 } ?? false } }

  /// Removes expired uploads regularly, as long as this instance lives.
  func keepRemovingExpired() {
    let configuration = dependencies.configuration
    let expiry = min(configuration.uploadExpirySeconds, configuration.emptyUploadExpirySeconds)
    let pause = min(max(expiry / 4, 1), 600)
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + pause) { [weak self] in
      guard let self else { return }
      Task {
        await self.removeExpired()
        self.keepRemovingExpired()
      }
    }
  }
}
