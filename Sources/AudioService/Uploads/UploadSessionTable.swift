import Dispatch
import Jobs
import Storage
import Synchronization

/// Creates resumable uploads, hands out one session for each, and removes them when they expire.
final class UploadSessionTable: Sendable {
  /// A session of the wrong tenant finds no upload, and doesn't get in the way of the right one's.
  private struct Name: Hashable {
    let tenant: Tenant
    let id: UploadID
  }

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
  private let clock: DeletionClock
  private let entries = Mutex<[Name: Entry]>([:])

  init(_ dependencies: UploadSession.Dependencies, clock: DeletionClock, work: WorkQueue, log: ServiceLog) {
    (self.dependencies, self.clock, self.work, self.log) = (dependencies, clock, work, log)
  }

  /// Creates an empty upload of `length` bytes, or of a length to be announced, for a tenant. It's durable on return.
  ///
  /// If the limit of unfinished uploads is reached, an empty one is removed: the oldest of the client that has the most
  /// of them, if that is more than this client has. Throws `.tooManyUploads` if there is none, and
  /// `.tooManyUploadsOfClient`.
  func create(
    length: Int64?, metadata: String?, concatenation: String? = nil, of tenant: Tenant, for client: Client,
    with token: UploadToken? = nil
  ) async throws -> UploadID {
    let now = dependencies.catalog.time
    let upload = Upload(
      id: UploadID(at: now), length: length, metadata: metadata, concatenation: concatenation,
      expiresAt: dependencies.emptyExpiry(from: now), client: client.key, token: token?.id)
    do { return try await insert(upload, of: tenant, token) } catch StorageError.tooManyUploads {
      guard try await makeRoom(for: client) else { throw StorageError.tooManyUploads(limit: limits(of: tenant).total) }
      return try await insert(upload, of: tenant, token)
    }
  }

  private func limits(of tenant: Tenant) -> UploadLimits {
    UploadLimits(
      total: dependencies.configuration.maximumOpenUploads,
      perClient: dependencies.accounts.count(.openUploads, of: tenant).map { Int($0) }
        ?? dependencies.configuration.maximumOpenUploadsPerClient)
  }

  /// Removing an empty upload loses only its address, which gets 404 from then on.
  private func makeRoom(for client: Client) async throws -> Bool {
    let dependencies = dependencies
    let candidates = try await work.run { () throws(StorageError) in
      try dependencies.catalog.emptyUploads(givingWayTo: client.key)
    }
    for upload in candidates where !isUsed(upload) {
      if try await using(upload.id, of: upload.tenant, { try await $0.removeIfEmpty() }) { return true }
    }
    return false
  }

  private func insert(_ upload: Upload, of tenant: Tenant, _ token: UploadToken?) async throws -> UploadID {
    let (dependencies, limits) = (dependencies, limits(of: tenant))
    return try await work.run { () throws(StorageError) in
      try dependencies.spool.prepare(upload.id)
      do throws(StorageError) {
        try dependencies.catalog.of(tenant).insert(upload, limits: limits, spending: token)
      } catch {
        if !StorageError.isUncertain(error) { dependencies.spool.removePart(of: upload.id) }
        throw error
      }
      return upload.id
    }
  }

  /// Calls `body` with the session of an upload that a caller may use. Throws `.noSuchUpload`, before anything is done,
  /// if the caller has a token that the upload wasn't begun with.
  func using<R>(_ id: UploadID, by caller: Caller, _ body: (UploadSession) async throws -> R) async throws -> R {
    try await using(id, of: caller.tenant) { session in
      if let token = caller.uploadToken { try await session.check(begunWith: token.id) }
      return try await body(session)
    }
  }

  /// Calls `body` with the session of a tenant's upload, which all concurrent callers share.
  func using<R>(
    _ id: UploadID, of tenant: Tenant, _ body: (UploadSession) async throws -> R
  ) async throws -> R {
    let session = take(Name(tenant: tenant, id: id))
    defer { give(session) }
    return try await body(session)
  }

  private func take(_ name: Name) -> UploadSession {
    let dependencies = dependencies
    return entries.withLock { entries in
      var entry = entries[name] ?? Entry(session: UploadSession(name.id, of: name.tenant, dependencies))
      entry.users += 1
      entries[name] = entry
      return entry.session
    }
  }

  private func give(_ session: UploadSession) {
    // Released outside the lock, because closing a file may take a while.
    let name = Name(tenant: session.tenant, id: session.id)
    let dropped = entries.withLock { entries -> UploadSession? in
      entries[name]?.users -= 1
      guard entries[name]?.users == 0 else { return nil }
      if session.isSpent { return entries.removeValue(forKey: name)?.session }
      guard entries.count > Self.idleLimit else { return nil }
      return entries.first { $0.value.users == 0 }.flatMap { entries.removeValue(forKey: $0.key)?.session }
    }
    withExtendedLifetime(dropped) {}
  }

  // MARK: Giving up

  /// Removes uploads that have expired and have no request in progress, and answers too old to be repeated. Does
  /// nothing while the catalog's clock may be wrong.
  func removeExpired() async {
    do {
      let now = try await work.run { [clock] () throws(StorageError) in try clock.time() }
      if let now { await removeExpired(now: now) }
    } catch {
      log.failure("expired uploads could not be listed", ["error": logText(error)])
    }
  }

  /// Removes the uploads that have expired before `now`.
  func removeExpired(now: Timestamp) async {
    let dependencies = dependencies
    var expired: [Upload] = []
    do {
      expired = try await work.run { () throws(StorageError) in
        try dependencies.catalog.uploads(expiredBefore: now)
      }
    } catch {
      log.failure("expired uploads could not be listed", ["error": logText(error)])
    }
    for upload in expired where !isUsed(upload) {
      do {
        try await using(upload.id, of: upload.tenant) { try await $0.remove(ifExpiredBefore: now) }
      } catch {
        // One whose file can't be removed must not keep the others.
        log.failure("an expired upload could not be removed", ["upload": upload.id.text, "error": logText(error)])
      }
    }
    do {
      // On a full disk, after the uploads have made room.
      try await work.run { () throws(StorageError) in
        // Some time later, because nodes don't know the catalog's clock to the second.
        try dependencies.catalog.forgetSpentTokens(before: now + -3600)
        try dependencies.catalog.forgetJobSeconds()
        _ = try dependencies.catalog.removeAnswers(before: IdempotencyKeys.oldest(at: now))
      }
    } catch {
      log.failure("old answers and tokens could not be removed", ["error": logText(error)])
    }
  }

  private func isUsed(_ upload: Upload) -> Bool {
    let name = Name(tenant: upload.tenant, id: upload.id)
    return entries.withLock { $0[name].map { $0.users > 0 } ?? false }
  }

  /// Removes expired uploads regularly, as long as this instance lives.
  func keepRemovingExpired() {
    let configuration = dependencies.configuration
    let expiry = min(configuration.uploadExpirySeconds, configuration.emptyUploadExpirySeconds)
    let pause = min(max(expiry / 4, 1), 600)
    dependencies.catalog.clock.after(pause) { [weak self] in
      guard let self else { return }
      Task {
        await self.removeExpired()
        self.keepRemovingExpired()
      }
    }
  }
}
