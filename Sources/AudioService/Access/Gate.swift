import HTTP
import Jobs
import Storage

/// Decides who a request is from and whether the rule of its route admits it, before the handler is called.
///
/// A key is looked up for each request, so that one that was revoked or has expired ends at once.
final class Gate: Sendable {
  private let context: Context
  private var access: Access { context.access }

  init(_ context: Context) { self.context = context }

  /// Returns the route for the router, with its rule applied before its handler.
  func guarding(_ route: ServiceRoute) -> Route {
    let (handler, rule) = (route.handler, route.rule)
    guard let ring = access.ring, rule != .everyone else {
      return Route(route.method, route.pattern) { [context] request, parameters in
        request.notes.note { $0.route = route.pattern }
        return try handler(request, parameters, Caller(.everything, of: .none, request, context))
      }
    }
    return Route(route.method, route.pattern) { [self] request, parameters in
      request.notes.note { $0.route = route.pattern }
      let grant: Caller.Grant
      do throws(AccessError) { grant = try admit(request, parameters, rule, ring) } catch .invalidKey {
        return .later { [self] in
          let grant = try await lastTry(request) { () throws(AccessError) in
            try admit(request, parameters, rule, ring)
          }
          return try await serve(request, parameters, grant, handler).response
        }
      }
      return try serve(request, parameters, grant, handler)
    }
  }

  private func serve(
    _ request: HTTPRequest, _ parameters: PathParameters, _ grant: Caller.Grant, _ handler: ServiceHandler
  ) throws -> HTTPAnswer {
    let caller = Caller(grant, of: grant.tenant, request, context)
    let rate = try context.accounts.takeRequest(of: grant.tenant)
    let answer = try handler(request, parameters, caller)
    var isShared = false
    if case .token = grant { isShared = request.method.isSafe }
    guard isShared || rate != nil else { return answer }
    let finish: @Sendable (HTTPResponse) -> HTTPResponse = { [isShared] response in
      var response = isShared ? Self.sharing(response) : response
      for (name, value) in rate ?? [:] { response.fields[name] = value }
      return response
    }
    switch answer {
    case .now(let response): return .now(finish(response))
    case .later(let work): return .later { finish(try await work()) }
    }
  }

  /// A token may be used in another site's page, which couldn't embed an image or a sound otherwise.
  private static func sharing(_ response: HTTPResponse) -> HTTPResponse {
    var response = response
    response.fields["Cross-Origin-Resource-Policy"] = "cross-origin"
    response.fields["Referrer-Policy"] = "no-referrer"
    return response
  }

  /// Refuses a request for a path or method that has no route. With keys, only callers with a valid one learn that.
  func refuse(_ error: RoutingError, _ request: HTTPRequest) throws -> HTTPAnswer {
    guard let ring = access.ring, request.target.segments.first == "v1" else { throw error }
    do throws(AccessError) { _ = try credential(of: request, ring) } catch .invalidKey {
      return .later { [self] in
        _ = try await lastTry(request) { () throws(AccessError) in try credential(of: request, ring) }
        throw error
      }
    }
    throw error
  }

  // MARK: Who it is

  private func admit(
    _ request: HTTPRequest, _ parameters: PathParameters, _ rule: AccessRule, _ ring: KeyRing
  ) throws(AccessError) -> Caller.Grant {
    let grant = try credential(of: request, ring)
    request.notes.note { ($0.tenant, $0.key) = (grant.tenant.name, grant.keyID) }
    try grant.check(rule, request, parameters)
    return grant
  }

  /// Returns what the request's key or token grants. A key is never accepted in the query, where it would end up in
  /// logs and histories.
  private func credential(of request: HTTPRequest, _ ring: KeyRing) throws(AccessError) -> Caller.Grant {
    if let field = request.fields["Authorization"] {
      guard let secret = Self.bearer(field) else { throw .invalidKey }
      if let key = ring.key(for: secret) { return .key(key) }
      return try token(secret, ring)
    }
    guard let item = request.target.query.first(where: { $0.name == "token" }) else { throw .missingKey }
    return try token(Array(item.value.utf8), ring)
  }

  /// Returns the credential of a field `Bearer <credential>` (RFC 6750 §2.1).
  private static func bearer(_ field: String) -> [UInt8]? {
    let bytes = Array(field.utf8)
    guard bytes.count > 7, String(decoding: bytes[..<6], as: UTF8.self).lowercased() == "bearer", bytes[6] == 0x20
    else {
      return nil
    }
    let secret = bytes[7...].drop { $0 == 0x20 }
    return secret.isEmpty ? nil : Array(secret)
  }

  /// Returns what a token grants, which is never more than the key that minted it does now.
  private func token(_ text: [UInt8], _ ring: KeyRing) throws(AccessError) -> Caller.Grant {
    guard let token = AccessToken(text, secrets: access.secrets.all), let key = ring.key(id: token.key),
      token.isMinted(by: key), token.isCurrent(at: access.clock.now)
    else { throw .invalidKey }
    return .token(token, key)
  }

  // MARK: Wrong keys

  /// Looks for a key that was added a moment ago, then refuses the request, which waits its client's turn.
  private func lastTry(
    _ request: HTTPRequest, _ admit: () throws(AccessError) -> Caller.Grant
  ) async throws -> Caller.Grant {
    let context = context
    if await context.work.run({ context.reloadAccess() }) {
      do throws(AccessError) { return try admit() } catch {
        guard error == .invalidKey else { throw error }
      }
    }
    guard let client = Client.distinct(request, trusting: context.configuration.trustedProxies) else {
      throw AccessError.invalidKey
    }
    let seconds = access.wait(afterFailureOf: client)
    guard seconds <= FailedAttempts.longestWait else {
      throw AccessError.tooManyInvalidKeys(retryAfter: Int(seconds.rounded(.up)))
    }
    if seconds > 0 { try await Task.sleep(for: .seconds(seconds)) }
    throw AccessError.invalidKey
  }
}
