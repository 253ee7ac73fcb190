// The Idempotency-Key field (draft-ietf-httpapi-idempotency-key-header-07): a client that got no answer sends the same
// request again under the same key, and what was asked for is done once.
//
//   no answer kept      the request is done; the answer is kept in the transaction that does it, for a day
//   kept, same request  the first answer again, whatever has become of what it tells of, with Idempotency-Replayed:
//                       true
//   kept, another one   422: judged by a fingerprint, of the content itself, not of how it was sent
//   under way           409, without reading the request's body
//
// A key is its client's: of another's with the same one it neither waits nor learns. (An answer kept before keys were
// told apart is found by nobody, and goes after its day.)
//
// Refusals are not kept: what was done is nothing, and the same request may succeed later.

import HTTP
import Storage
import Synchronization
import Webhooks

/// Answers requests that carry a key once, however often they come.
final class IdempotencyKeys: Sendable {
  /// How long an answer is kept.
  private static let keptMilliseconds: Int64 = 86_400_000

  private struct Name: Hashable { let scope, key: String }

  private let catalog: Catalog
  private let work: WorkQueue
  private let underWay = Mutex<Set<Name>>([])

  private let proxies: [Network]

  init(catalog: Catalog, work: WorkQueue, proxies: [Network]) {
    (self.catalog, self.work, self.proxies) = (catalog, work, proxies)
  }

  /// The time before which answers are too old to be given again.
  static func oldest(at now: Timestamp) -> Timestamp {
    Timestamp(milliseconds: now.milliseconds - keptMilliseconds)
  }

  /// Runs `body` as the only one with the request's key, which is nil where the request has none.
  func once(
    _ request: HTTPRequest, _ body: (IdempotencyKey?) async throws -> HTTPResponse
  ) async throws -> HTTPResponse {
    guard let key = request.fields["Idempotency-Key"] else { return try await body(nil) }
    guard (1...255).contains(key.utf8.count), key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw RequestError.invalidField("Idempotency-Key", .visibleASCII(limit: 255))
    }
    let client = Client(request, trusting: proxies)
    let name = Name(scope: "\(client.key) \(request.method.rawValue) \(request.target.path)", key: key)
    guard underWay.withLock({ $0.insert(name).inserted }) else { throw ServiceError.keyInUse(key) }
    defer { underWay.withLock { _ = $0.remove(name) } }
    let catalog = catalog
    let kept = try await work.run { () throws(StorageError) in try catalog.answer(scope: name.scope, key: key) }
    let isGood = kept.map { $0.createdAt >= Self.oldest(at: .now) } ?? false
    return try await body(IdempotencyKey(scope: name.scope, key: key, kept: isGood ? kept : nil))
  }
}

/// The key of a request, and the answer that was given under it before.
struct IdempotencyKey: Sendable {
  let scope: String
  let key: String
  let kept: KeptAnswer?

  /// The first answer, nil where there was none. Throws `.keyReused` where it was given to another request.
  func repeated(_ fingerprint: String) throws(ServiceError) -> HTTPResponse? {
    guard let kept else { return nil }
    guard kept.fingerprint == fingerprint else { throw .keyReused(key) }
    var response = HTTPResponse.changed(
      JSONDocument(bytes: Array(kept.body.utf8)), HTTPStatus(code: kept.status), location: kept.location)
    response.fields["Idempotency-Replayed"] = "true"
    return response
  }

  /// What is to be kept of the answer to this request.
  func answer(_ fingerprint: String, _ status: HTTPStatus, location: String, _ document: JSONDocument) -> KeptAnswer {
    KeptAnswer(
      scope: scope, key: key, fingerprint: fingerprint, status: status.code, location: location,
      body: String(decoding: document.bytes, as: UTF8.self))
  }
}
