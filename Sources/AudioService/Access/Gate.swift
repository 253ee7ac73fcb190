import HTTP
import Jobs
import Storage

/// Decides who a request is from and whether the rule of its route admits it, before the handler is called.
///
/// A valid credential is remembered until the files of keys or secrets have changed, or it expires.
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
        return try handler(request, parameters, Caller(everythingOf: request, context))
      }
    }
    return Route(route.method, route.pattern) { [self] request, parameters in
      let admission: Admission
      do throws(AccessError) { admission = try admit(request, ring) } catch .invalidKey {
        request.notes.note { $0.route = route.pattern }
        return .later { [self] in
          let admission = try await lastTry(request, ring)
          return try await serve(request, parameters, admission, route).response
        }
      }
      return try serve(request, parameters, admission, route)
    }
  }

  private func serve(
    _ request: HTTPRequest, _ parameters: PathParameters, _ admission: Admission, _ route: ServiceRoute
  ) throws -> HTTPAnswer {
    let grant = admission.grant
    let rate = try count(request, admission, route: route.pattern)
    try grant.check(route.rule, request, parameters)
    let caller = Caller(admission, request, context)
    if request.body.declaredLength != 0 {
      // Not of the caller, which holds the request.
      request.body.allowReading { [access] in !admission.isWithdrawn(access) }
    }
    let answer = try route.handler(request, parameters, caller)
    var isShared = false
    if case .token = grant { isShared = request.method.isSafe }
    let finish: @Sendable (HTTPResponse) -> HTTPResponse = { [isShared] response in
      var response = response
      // A token in a page's address must not reach the sites that the page links to.
      if isShared { response.fields["Referrer-Policy"] = "no-referrer" }
      for (name, value) in rate ?? [:] { response.fields[name] = value }
      return response
    }
    switch answer {
    case .now(let response): return isShared || rate != nil ? .now(finish(response)) : answer
    case .later(let work):
      return .later {
        let result: Result<HTTPResponse, any Error>
        do { result = .success(try await work()) } catch { result = .failure(error) }
        // The key may have been revoked while the handler waited, for the client or for a job.
        try caller.checkAdmission()
        return finish(try result.get())
      }
    }
  }

  /// Refuses a request for a path or method that has no route. With keys, only callers with a valid one learn that.
  func refuse(_ error: RoutingError, _ request: HTTPRequest) throws -> HTTPAnswer {
    guard let ring = access.ring, request.target.segments.first == "v1" else { throw error }
    let admission: Admission
    do throws(AccessError) { admission = try admit(request, ring) } catch .invalidKey {
      return .later { [self] in
        try count(request, try await lastTry(request, ring))
        throw error
      }
    }
    try count(request, admission)
    throw error
  }

  /// Notes whose request it is and counts it toward the tenant's rate. Returns the fields that say how much is left.
  @discardableResult
  private func count(_ request: HTTPRequest, _ admission: Admission, route: String = "") throws -> HTTPFields? {
    let grant = admission.grant
    request.notes.note { ($0.route, $0.tenant, $0.key) = (route, grant.tenant.name, grant.keyID) }
    return try context.accounts.takeRequest(of: grant.tenant, named: admission.limits)
  }

  // MARK: Who it is

  /// Returns what the request's key or token grants. A key is never accepted in the query, where it would end up in
  /// logs and histories.
  private func admit(_ request: HTTPRequest, _ ring: KeyRing) throws(AccessError) -> Admission {
    switch request.fields.occurrence(of: "Authorization") {
    case .never:
      guard let item = request.target.query.first(where: { $0.name == "token" }) else { throw .missingKey }
      let text = Array(item.value.utf8)
      let credential = Admission.Credential.parameter(text)
      return try remembered(credential) { () throws(AccessError) in try token(text, ring) }
    case .once(let field):
      return try remembered(.field(field)) { () throws(AccessError) in
        guard let secret = Self.bearer(field) else { throw .invalidKey }
        if let grant = ring.grant(for: secret) { return grant }
        return try token(secret, ring)
      }
    case .repeatedly: throw .invalidKey
    }
  }

  /// Returns the remembered admission of a credential. Without one, calls `find` and remembers what it returns.
  private func remembered(
    _ credential: Admission.Credential, _ find: () throws(AccessError) -> Caller.Grant
  ) throws(AccessError) -> Admission {
    let (admissions, generation) = (access.admissions, access.generation)
    if let found = admissions.find(credential, generation: generation, access.clock) { return found }
    let grant = try find()
    let limits = access.ring?.namedLimits(of: grant.tenant)
    let admission = Admission(grant, limits: limits, for: credential, generation: generation)
    admissions.keep(admission, for: credential)
    return admission
  }

  /// Returns the credential of a field `Bearer <credential>` (RFC 6750 §2.1).
  private static func bearer(_ field: ArraySlice<UInt8>) -> [UInt8]? {
    guard field.count > 7, String(decoding: field.prefix(6), as: UTF8.self).lowercased() == "bearer",
      field[field.startIndex + 6] == 0x20
    else { return nil }
    let secret = field.dropFirst(7).drop { $0 == 0x20 }
    return secret.isEmpty ? nil : Array(secret)
  }

  /// Returns what a token grants, which is never more than the key that minted it does now.
  private func token(_ text: [UInt8], _ ring: KeyRing) throws(AccessError) -> Caller.Grant {
    guard let token = AccessToken(text, secrets: access.secrets.all), let key = ring.key(id: token.key),
      token.isMinted(by: key)
    else { throw .invalidKey }
    let grant = Caller.Grant.token(token, key)
    guard grant.isCurrent(access.clock) else { throw .invalidKey }
    return grant
  }

  // MARK: Wrong keys

  /// Looks for a key that was added a moment ago, then refuses the request, which waits its client's turn.
  private func lastTry(_ request: HTTPRequest, _ ring: KeyRing) async throws -> Admission {
    let context = context
    await context.work.run { context.reloadAccess() }
    // Another request or the watcher may have read the file first, so whether this one did doesn't matter.
    do throws(AccessError) { return try admit(request, ring) } catch {
      guard error == .invalidKey else { throw error }
    }
    guard let client = Client.distinct(request, trusting: context.configuration.trustedProxies) else {
      throw AccessError.invalidKey
    }
    let seconds = access.wait(afterFailureOf: client)
    guard seconds <= FailedAttempts.longestWait else {
      throw AccessError.tooManyInvalidKeys(retryAfter: Int(seconds.rounded(.up)))
    }
    if seconds > 0 { try await context.clock.sleep(seconds) }
    throw AccessError.invalidKey
  }
}
