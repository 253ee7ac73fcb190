import HTTP
import Jobs
import Storage

/// Whoever sent a request, as far as it has proved it: the tenant it acts for, and what it may use there.
struct Caller: Sendable {
  let tenant: Tenant
  let grant: Grant
  /// nil without keys.
  private let admission: Admission?
  private let turns: Turns
  private let context: Context

  /// What the client is found by.
  private enum Turns {
    case request(HTTPRequest)
    case known(Client)
  }

  /// Creates a caller that may use everything that belongs to no tenant.
  init(everythingOf request: HTTPRequest, _ context: Context) {
    (grant, tenant, admission, turns, self.context) = (.everything, .none, nil, .request(request), context)
  }

  /// Creates a caller that may use everything of a tenant.
  init(of tenant: Tenant, _ request: HTTPRequest, _ context: Context) {
    (grant, self.tenant, admission, turns, self.context) = (.everything, tenant, nil, .request(request), context)
  }

  /// Creates the caller of what a client of a tenant has asked for earlier.
  init(of tenant: Tenant, _ client: Client, _ context: Context) {
    (grant, self.tenant, admission, turns, self.context) = (.everything, tenant, nil, .known(client), context)
  }

  init(_ admission: Admission, _ request: HTTPRequest, _ context: Context) {
    (grant, tenant, self.admission) = (admission.grant, admission.grant.tenant, admission)
    (turns, self.context) = (.request(request), context)
  }

  /// The tenant's part of the catalog.
  var catalog: TenantCatalog { context.catalog(of: tenant) }

  /// The client that takes turns with others: the tenant, or without keys, the address.
  var client: Client {
    if let admission { return admission.client }
    return switch turns {
    case .request(let request): Client(request, trusting: context.configuration.trustedProxies)
    case .known(let client): client
    }
  }

  /// Idempotency keys in different spaces are different keys.
  var idempotencySpace: String {
    if case .token(let token, _) = grant { return "token \(token.id)" }
    return client.key
  }

  /// The token for an upload; nil if the caller has none and needs none.
  var uploadToken: AccessToken? {
    guard case .token(let token, _) = grant, token.upload == true else { return nil }
    return token
  }

  /// Maximum size of an upload of the caller, in bytes.
  var uploadLimit: Int64 {
    min(uploadToken?.limits?.maxBytes ?? .max, context.configuration.maximumUploadBytes)
  }

  /// Throws `.tooLarge` if the caller may not upload this many bytes.
  func checkLength(_ bytes: Int64) throws(RequestBodyError) {
    guard bytes <= uploadLimit else { throw .tooLarge(limit: uploadLimit) }
  }

  /// Whether the caller may start the conversion of a recording that it may read.
  var mayConvert: Bool {
    guard case .token(let token, _) = grant else { return true }
    return token.convert == true
  }

  /// Whether the key or token is still valid, for responses that go on for long.
  var isStillAdmitted: Bool { admission?.isStillValid(context.access) ?? true }

  /// Throws `.invalidKey` if the key or token has been withdrawn. Called by what has waited, before it changes
  /// anything.
  func checkAdmission() throws(AccessError) {
    if let admission, admission.isWithdrawn(context.access) { throw .invalidKey }
  }

  /// Seconds until the caller's token ends; nil if it has none.
  var secondsLeft: Int? {
    guard case .token(let token, _) = grant else { return nil }
    return Int(token.exp - context.access.clock.now.milliseconds / 1000)
  }

  /// Returns the current Job together with its step, or nil if there is none that the caller may follow.
  func snapshot(of id: JobID) async throws -> JobSnapshot? {
    guard let found = try await context.documents.snapshot(id, of: tenant) else { return nil }
    guard case .token(let token, _) = grant else { return found }
    return token.recording.map(found.concerns) == true ? found : nil
  }
}

extension Client {
  /// The client that all requests of a tenant count toward.
  init(_ tenant: Tenant) { self.init(key: Self.prefix + tenant.name) }

  /// The tenant that the client stands for; nil if it is an address.
  var tenant: Tenant? { key.hasPrefix(Self.prefix) ? Tenant(String(key.dropFirst(Self.prefix.count))) : nil }

  private static let prefix = "tenant "
}

// MARK: Grants

extension Caller {
  /// What a request may use.
  enum Grant: Sendable {
    /// Everything: the service has no keys.
    case everything
    /// What the key's scopes allow; with the secret that was sent.
    case key(Key, Key.Secret)
    /// What the token allows, and nothing that the key which minted it doesn't.
    case token(AccessToken, Key)
  }
}

extension Caller.Grant {
  /// Whose recordings it gives access to.
  var tenant: Tenant { key?.tenant ?? .none }

  /// The ID of the key; empty without keys.
  var keyID: String { key?.id ?? "" }

  /// Whether neither the key nor its secret or the token has expired.
  func isCurrent(_ clock: AccessClock) -> Bool {
    switch self {
    case .everything: true
    case .key(let key, let secret): key.isCurrent(clock) && clock.isBefore(secret.expiresAt)
    case .token(let token, let key): key.isCurrent(clock) && token.isCurrent(at: clock.now)
    }
  }

  /// When it ends by itself, apart from a token's own end, which never changes; nil for never.
  var end: Timestamp? {
    switch self {
    case .everything: nil
    case .key(let key, let secret): [key.expiresAt, secret.expiresAt].compactMap { $0 }.min()
    case .token(_, let key): key.expiresAt
    }
  }

  /// The ID of the token; nil if there is none.
  var tokenID: String? {
    guard case .token(let token, _) = self else { return nil }
    return token.id
  }

  /// The key, or the one that minted the token; nil without keys.
  var key: Key? {
    switch self {
    case .everything: nil
    case .key(let key, _), .token(_, let key): key
    }
  }

  /// Throws unless the rule admits a request with this grant.
  func check(_ rule: AccessRule, _ request: HTTPRequest, _ parameters: PathParameters) throws(AccessError) {
    switch self {
    case .everything: return
    case .key(let key, _): try Self.check(key, rule, request)
    case .token(let token, let key):
      try Self.check(token, rule, request, parameters)
      // A token for an upload may also end it, which a key may only with the scope of deletions.
      if rule != .upload { try Self.check(key, rule, request) } else { try Self.check(key, .key(.write), request) }
    }
  }

  private static func check(_ key: Key, _ rule: AccessRule, _ request: HTTPRequest) throws(AccessError) {
    let wanted: Scope
    switch rule {
    case .everyone, .anyKey: return
    case .operators: wanted = .admin
    case .key(let scope), .recording(let scope): wanted = scope
    case .jobEvents: wanted = .read
    case .newUpload: wanted = .write
    case .upload:
      switch (try? request.tusMethod()) ?? request.method {
      case .head, .get: wanted = key.scopes.contains(.read) ? .read : .write
      case .delete: wanted = .delete
      default: wanted = .write
      }
    }
    guard key.scopes.contains(wanted) else { throw .missingScope(wanted) }
  }

  /// Parameters that name something besides the recording in the path.
  private static let otherThings: Set<String> = ["overlay", "profile"]

  private static func check(
    _ token: AccessToken, _ rule: AccessRule, _ request: HTTPRequest, _ parameters: PathParameters
  ) throws(AccessError) {
    let isAllowed =
      switch rule {
      case .everyone: true
      case .operators, .key, .anyKey: false
      case .recording(let scope): token.allows(scope, of: RecordingID(parameters["id"]))
      case .jobEvents: token.allows(.read, of: token.recording)
      case .newUpload, .upload: token.upload == true
      }
    guard isAllowed else { throw .notInToken(parameter: nil) }
    if let other = request.target.query.first(where: { otherThings.contains($0.name) }) {
      throw .notInToken(parameter: other.name)
    }
  }
}
