import HTTP
import Storage
import Synchronization

/// A small S3-compatible store on a port of its own, in memory. It verifies every signature with code of its own, and
/// fails as a test chooses.
package final class S3Server: Sendable {
  /// A key that may use the store.
  package struct Key: Sendable {
    let accessKey, secretKey: String
    let sessionToken: String?
    let hasExpired: Bool

    /// Creates a key.
    package init(_ accessKey: String, _ secretKey: String, sessionToken: String? = nil, hasExpired: Bool = false) {
      (self.accessKey, self.secretKey) = (accessKey, secretKey)
      (self.sessionToken, self.hasExpired) = (sessionToken, hasExpired)
    }
  }

  /// How to treat one request.
  package enum Fault: Sendable {
    /// Answers with this status and code instead of carrying it out.
    case refuses(Int, code: String)
    /// Carries it out, but breaks the connection after this many bytes of the answer's content.
    case cuts(afterBytes: Int)
    /// The same, a while after it has sent those bytes.
    case stalls(afterBytes: Int, Duration)
    /// Answers with these bytes, says that the content has `length` bytes, or no length, and doesn't look at the
    /// request. `range` is the value of Content-Range, with status 206.
    case claims(length: Int64?, [UInt8], range: String? = nil)
    /// Carries it out, but says of the object that it has this length. Only for HEAD.
    case misstates(length: Int64)
    /// Carries it out and never answers.
    case hangs
    /// Carries it out, and sends 200 and then this error, as S3 does for operations that take long.
    case failsLate(code: String)
    /// Carries it out once the stream ends.
    case holds(until: AsyncStream<Never>)
    /// Carries it out once the stream ends, but breaks the connection before the answer's content.
    case breaks(until: AsyncStream<Never>)
    /// Carries it out after a while.
    case delays(Duration)
    /// Breaks the connection at once, and carries it out when a test calls `carryOutPostponed`.
    case postpones
    /// Answers with other bytes than those of the object: these bits of each are changed.
    case damages(UInt8)
    /// Answers with this status and these bytes, whatever the request.
    case answers([UInt8], status: Int = 200)
    /// Replaces the object by these bytes before it carries the request out.
    case replaces([UInt8])
    /// Carries it out normally.
    case none
  }

  /// A request that arrived.
  package struct Received: Sendable, Equatable {
    /// The method.
    package let method: String
    /// The path as sent, with its escapes.
    package let path: String
    /// The names of the query's items.
    package let query: [String]
    /// The value of `Range`.
    package let range: String?
    /// The value of `x-amz-server-side-encryption`.
    package let encryption: String?
  }

  struct State {
    var objects: [String: [String: StoredObject]]
    var uploads: [String: PartialObject] = [:]
    var keys: [Key]
    var faults: [Fault] = []
    /// Chooses how to treat the requests for which `faults` has nothing.
    var chooseFault: (@Sendable (Received) -> Fault)?
    var postponed: [StoreRequest] = []
    var received: [Received] = []
    var nextUpload = 1
    var clockOffsetSeconds: Int64 = 0
    var quotaBytes = Int.max
    /// The part of the path that reads are refused for; nil for none.
    var refusedReads: String?
  }

  let region: String
  let state: Mutex<State>
  private let server: HTTPServer
  /// The address of the store, without a slash at its end.
  package let endpoint: String

  /// Starts a store with empty buckets.
  package init(region: String = "us-east-1", buckets: [String], keys: [Key]) throws {
    self.region = region
    let responder = Responder()
    state = Mutex(State(objects: Dictionary(uniqueKeysWithValues: buckets.map { ($0, [:]) }), keys: keys))
    var configuration = HTTPServerConfiguration()
    configuration.host = "127.0.0.1"
    configuration.port = 0
    configuration.loopCount = 1
    // Tests count connections, however long they have to wait for their turn.
    configuration.limits.idleSeconds = 3600
    server = HTTPServer(configuration, responder: responder)
    endpoint = "http://\(try server.start())"
    responder.store.withLock { $0 = Weak(self) }
  }

  /// Closes the port.
  package func stop() async { await server.stop(within: 0) }

  // MARK: What tests set and see

  /// Treats the next requests like this, in order.
  package func fail(_ faults: Fault...) { state.withLock { $0.faults += faults } }

  /// Treats all further requests normally.
  package func heal() { state.withLock { $0.faults = [] } }

  /// Has `choose` say how to treat each further request, after those that `fail` is about; nil: normally.
  package func fail(as choose: (@Sendable (Received) -> Fault)?) { state.withLock { $0.chooseFault = choose } }

  /// Carries out the first `count` of the requests that it has postponed.
  package func carryOutPostponed(_ count: Int = .max) {
    let requests = state.withLock { state in
      let first = Array(state.postponed.prefix(count))
      state.postponed.removeFirst(first.count)
      return first
    }
    // Nobody hears of their failures any more.
    for request in requests { _ = try? perform(request) }
  }

  /// Replaces the keys.
  package func setKeys(_ keys: [Key]) { state.withLock { $0.keys = keys } }

  /// Sets the store's clock ahead of the system's.
  package func setClock(ahead seconds: Int64) { state.withLock { $0.clockOffsetSeconds = seconds } }

  /// Puts an object without a request.
  package func put(_ bytes: [UInt8], as key: String, in bucket: String) {
    state.withLock { $0.objects[bucket]?[key] = StoredObject(bytes: bytes) }
  }

  /// Removes an object without a request.
  package func remove(_ key: String, in bucket: String) { state.withLock { $0.objects[bucket]?[key] = nil } }

  /// Gives the bucket `name` another one, as if nobody could see it under its own.
  package func rename(_ bucket: String, to name: String) {
    state.withLock { $0.objects[name] = $0.objects.removeValue(forKey: bucket) }
  }

  /// Creates an empty bucket, or empties it.
  package func empty(_ bucket: String) { state.withLock { $0.objects[bucket] = [:] } }

  /// Sets how many bytes each bucket may hold.
  package func setQuota(bytes: Int) { state.withLock { $0.quotaBytes = bytes } }

  /// Answers reads of paths that contain `part` with 503 from now on; with nil, none.
  package func refuseReads(of part: String?) { state.withLock { $0.refusedReads = part } }

  /// The requests so far.
  package var received: [Received] { state.withLock { $0.received } }

  /// The objects of a bucket, by key.
  package func objects(in bucket: String) -> [String: [UInt8]] {
    state.withLock { $0.objects[bucket]?.mapValues(\.bytes) ?? [:] }
  }

  /// The number of connections so far.
  package var connectionCount: Int { server.statistics.acceptedConnections }

  /// The number of multipart uploads in progress.
  package var uploadCount: Int { state.withLock { $0.uploads.count } }

  /// A multipart upload in progress.
  package struct UnfinishedUpload: Sendable {
    /// The object that it is to become.
    package let key: String
    /// The store's name for it.
    package let id: String
    /// The number of parts so far.
    package let partCount: Int
  }

  /// The multipart uploads in progress, in no particular order.
  package func uploads(in bucket: String) -> [UnfinishedUpload] {
    state.withLock { state in
      state.uploads.filter { $0.value.bucket == bucket }
        .map { UnfinishedUpload(key: $0.value.key, id: $0.key, partCount: $0.value.parts.count) }
    }
  }

  // MARK: Serving

  private struct Weak: Sendable {
    weak let store: S3Server?

    init(_ store: S3Server) { self.store = store }
  }

  /// Doesn't keep the store alive.
  private final class Responder: HTTPResponder {
    let store = Mutex<Weak?>(nil)

    func respond(to request: HTTPRequest) -> HTTPAnswer {
      guard let store = store.withLock({ $0?.store }) else { return .now(HTTPResponse(.serviceUnavailable)) }
      return .later { try await store.respond(to: request) }
    }
  }

  private func respond(to request: HTTPRequest) async throws -> HTTPResponse {
    let received = Received(
      method: request.method.rawValue, path: request.target.path, query: request.target.query.map(\.name),
      range: request.fields["Range"], encryption: request.fields["x-amz-server-side-encryption"])
    let isReading = [.get, .head].contains(request.method)
    let (planned, choose) = state.withLock { state -> (Fault?, (@Sendable (Received) -> Fault)?) in
      state.received.append(received)
      if isReading, let part = state.refusedReads, received.path.contains(part) {
        return (.refuses(503, code: "SlowDown"), nil)
      }
      return (state.faults.isEmpty ? nil : state.faults.removeFirst(), state.chooseFault)
    }
    let fault = planned ?? choose?(received) ?? Fault.none
    if case .refuses(let status, let code) = fault { return StoreFailure(status, code).response }
    if case .delays(let duration) = fault { try await Task.sleep(for: duration) }
    if case .holds(let gate) = fault { for await _ in gate {} }
    if case .breaks(let gate) = fault { for await _ in gate {} }
    let response: HTTPResponse
    do {
      // Before the content, so that a client that waits for 100 Continue doesn't send it in vain.
      try SignatureCheck(request, self).verify()
      let body = try await request.body.collect(upTo: 256 << 20)
      try SignatureCheck.verify(body, of: request)
      let request = StoreRequest(request, body: body)
      if case .replaces(let bytes) = fault, let key = request.key {
        state.withLock { $0.objects[request.bucket]?[key] = StoredObject(bytes: bytes) }
      }
      if case .postpones = fault {
        state.withLock { $0.postponed.append(request) }
        return Self.cut(HTTPResponse(.ok), after: 0)
      }
      response = try perform(request)
    } catch let failure as StoreFailure { response = failure.response }
    switch fault {
    case .cuts(let count): return Self.cut(response, after: count)
    case .stalls(let count, let duration): return Self.cut(response, after: count, and: duration)
    case .claims(let length, let bytes, let range):
      let fields: HTTPFields = range.map { ["ETag": "\"x\"", "Content-Range": $0] } ?? ["ETag": "\"x\""]
      return Self.cut(
        HTTPResponse(range == nil ? .ok : .partialContent, fields: fields, body: .bytes(bytes)), after: bytes.count,
        claiming: length)
    case .breaks: return Self.cut(response, after: 0)
    case .misstates(let length): return Self.cut(response, after: 0, claiming: length)
    case .hangs:
      for await _ in AsyncStream<Never>.makeStream().stream {}
      return response
    case .failsLate(let code):
      return HTTPResponse(.ok, body: StoreFailure(200, code).response.body)
    case .damages(let bits):
      return HTTPResponse(
        response.status, fields: response.fields, body: .bytes((response.body.bytesAtHand ?? []).map { $0 ^ bits }))
    case .answers(let bytes, let status): return HTTPResponse(HTTPStatus(code: status), body: .bytes(bytes))
    case .refuses, .delays, .holds, .replaces, .postpones, .none: return response
    }
  }

  /// Breaks off an answer after `count` bytes and a while.
  private static func cut(_ response: HTTPResponse, after count: Int, and pause: Duration = .zero) -> HTTPResponse {
    let length = max(response.body.length ?? 0, Int64(count) + 1)
    return cut(response, after: count, and: pause, claiming: length)
  }

  /// Sends `count` bytes of an answer that is said to have `length`, and breaks off if those are more.
  private static func cut(
    _ response: HTTPResponse, after count: Int, and pause: Duration = .zero, claiming length: Int64?
  ) -> HTTPResponse {
    struct Cut: Error {}
    let pieces = Mutex([(response.body.bytesAtHand ?? []).prefix(count)].filter { !$0.isEmpty })
    let box = Box(pieces)
    var response = response
    response.body = .stream(length: length) {
      if let piece = box.pieces.withLock({ $0.popLast() }) { return Array(piece) }
      if pause > .zero { try await Task.sleep(for: pause) }
      guard length ?? 0 <= Int64(count) else { throw Cut() }
      return nil
    }
    return response
  }

  private final class Box: Sendable {
    let pieces: Mutex<[ArraySlice<UInt8>]>

    init(_ pieces: consuming Mutex<[ArraySlice<UInt8>]>) { self.pieces = pieces }
  }
}

/// An object and its version.
struct StoredObject: Sendable {
  let bytes: [UInt8]
  /// What the client said about the content.
  let sha256: String?
  let modified = Timestamp.now
  /// The version: made of the content.
  let entityTag: String

  init(bytes: [UInt8], sha256: String? = nil) {
    (self.bytes, self.sha256) = (bytes, sha256)
    entityTag = "\"\(HMACSHA256.hexDigest(of: bytes, key: []).prefix(32))\""
  }
}

/// A multipart upload in progress.
struct PartialObject: Sendable {
  let bucket, key: String
  let sha256: String?
  var parts: [Int: StoredObject] = [:]
}

/// An answer that reports a failure.
struct StoreFailure: Error {
  let status: Int
  let code: String
  var details: [(name: String, value: String)] = []

  init(_ status: Int, _ code: String, _ details: [(name: String, value: String)] = []) {
    (self.status, self.code, self.details) = (status, code, details)
  }

  var response: HTTPResponse {
    let text = details.map { "<\($0.name)>\($0.value)</\($0.name)>" }.joined()
    let document =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>\(code)</Code><Message>&lt;\(code)&gt;</Message>\(text)</Error>"
    return HTTPResponse(
      HTTPStatus(code: status), fields: ["Content-Type": "application/xml"], body: .bytes(Array(document.utf8)))
  }
}
