// The Idempotency-Key field (draft-ietf-httpapi-idempotency-key-header-07): a client that got no response sends the
// same request again under the same key, and it is carried out only once.
//
//   no stored answer    carries the request out, and stores the answer in the same transaction, for a day
//   same request        repeats the first answer, even if its subject has changed since, with Idempotency-Replayed:
//                       true
//   another request     422; compared by a fingerprint of the content itself, not of how it was sent
//   in progress         409, without reading the request's body; on another node too (Catalog+HeldKeys)
//
// Keys are separate per tenant or, in a service without keys, per client: a request neither waits for nor learns about
// another one's with the same key. A token for one upload has keys of its own.
//
// Refusals aren't stored: nothing was done, and the same request may succeed later.

import HTTP
import Jobs
import Storage
import Synchronization

/// Carries out requests with a key only once, however often they are sent.
final class IdempotencyKeys: Sendable {
  /// How long an answer is stored.
  private static let keptMilliseconds: Int64 = 86_400_000

  private let work: WorkQueue
  private let heldKeys: HeldKeys
  private let underWay = Mutex<Set<HeldKeys.Name>>([])

  init(_ heldKeys: HeldKeys, work: WorkQueue) { (self.heldKeys, self.work) = (heldKeys, work) }

  /// Returns the time before which answers are too old to repeat.
  static func oldest(at now: Timestamp) -> Timestamp {
    Timestamp(milliseconds: now.milliseconds - keptMilliseconds)
  }

  /// Runs `body` exclusively for the request's key, which is nil if the request has none.
  func once(
    _ request: HTTPRequest, _ caller: Caller, _ body: (IdempotencyKey?) async throws -> HTTPResponse
  ) async throws -> HTTPResponse {
    guard let key = request.fields["Idempotency-Key"] else { return try await body(nil) }
    guard (1...255).contains(key.utf8.count), key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw RequestError.invalidField("Idempotency-Key", .visibleASCII(limit: 255))
    }
    let scope = "\(caller.idempotencySpace) \(request.method.rawValue) \(request.target.path)"
    let name = HeldKeys.Name(tenant: caller.tenant, scope: scope, key: key)
    guard underWay.withLock({ $0.insert(name).inserted }) else { throw ServiceError.keyInUse(key) }
    defer { underWay.withLock { _ = $0.remove(name) } }
    guard heldKeys.areNeeded else {
      return try await run(body, name, try await answer(to: name, caller.catalog), caller.catalog)
    }
    let kept = try await hold(name)
    do {
      let response = try await run(body, name, kept, caller.catalog)
      await release(name)
      return response
    } catch {
      await release(name)
      throw error
    }
  }

  private func run(
    _ body: (IdempotencyKey?) async throws -> HTTPResponse, _ name: HeldKeys.Name, _ kept: StoredResponse?,
    _ catalog: TenantCatalog
  ) async throws -> HTTPResponse {
    let isGood = kept.map { $0.createdAt >= Self.oldest(at: catalog.time) || catalog.doubtsClock } ?? false
    return try await body(IdempotencyKey(scope: name.scope, key: name.key, kept: isGood ? kept : nil))
  }

  private func answer(to name: HeldKeys.Name, _ catalog: TenantCatalog) async throws -> StoredResponse? {
    try await work.run { () throws(StorageError) in try catalog.answer(scope: name.scope, key: name.key) }
  }

  // MARK: Keys in a catalog that several processes share

  private func hold(_ name: HeldKeys.Name) async throws -> StoredResponse? {
    let hold = try await work.run { [heldKeys] () throws(StorageError) in try heldKeys.hold(name) }
    guard case .held(let kept) = hold else { throw ServiceError.keyInUse(name.key) }
    return kept
  }

  private func release(_ name: HeldKeys.Name) async { await work.run { [heldKeys] in heldKeys.release(name) } }
}

/// The key of a request, and the answer previously given for it.
struct IdempotencyKey: Sendable {
  let scope: String
  let key: String
  let kept: StoredResponse?

  /// Returns the first answer, or nil if there was none. Throws `.keyReused` if it was the answer to a different
  /// request.
  func repeated(_ fingerprint: String) throws(ServiceError) -> HTTPResponse? {
    guard let kept else { return nil }
    guard kept.fingerprint == fingerprint else { throw .keyReused(key) }
    var response = HTTPResponse.changed(
      JSONDocument(bytes: Array(kept.body.utf8)), HTTPStatus(code: kept.status), location: kept.location)
    response.fields["Idempotency-Replayed"] = "true"
    return response
  }

  /// Returns the answer to store for this request.
  func answer(
    _ fingerprint: String, _ status: HTTPStatus, location: String, _ document: JSONDocument, at time: Timestamp
  )
    -> StoredResponse
  {
    StoredResponse(
      scope: scope, key: key, fingerprint: fingerprint, status: status.code, location: location,
      body: String(decoding: document.bytes, as: UTF8.self), createdAt: time)
  }
}
