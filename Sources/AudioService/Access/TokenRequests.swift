import HTTP
import Storage

/// `POST /v1/tokens`: mints a token for one recording or one upload.
struct TokenRequests: Sendable {
  let context: Context

  private struct Answer: Encodable {
    let token, expiresAt: String
  }

  private static let known: JSONMembers.Known = [
    "recording": [], "scopes": [], "expires_in": [], "convert": [], "upload": [], "max_bytes": [],
  ]

  @Sendable func create(
    _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller
  ) async throws -> HTTPResponse {
    try QueryParameters.checkNone(request)
    let members = try await JSONMembers(bodyOf: request, known: Self.known)
    let seconds = try members.number("expires_in", in: 1...Double(AccessToken.longestSeconds)) ?? 3600
    let subject = try Self.subject(members)
    guard case .key(let key, _) = caller.grant else { throw AccessError.keysAreOff }
    let end = context.access.clock.now.milliseconds / 1000 + Int64(seconds)
    var token = AccessToken(id: RandomText.text(bytes: 16), key: key, exp: end)
    switch subject {
    case .recording(let text, let scopes, let convert):
      for scope in scopes where !key.scopes.contains(scope) { throw AccessError.missingScope(scope) }
      guard let id = RecordingID(text) else { throw ServiceError.noSuchRecording(text) }
      let catalog = caller.catalog
      guard try await context.work.run({ () throws(StorageError) in try catalog.recording(id) }) != nil else {
        throw ServiceError.noSuchRecording(text)
      }
      (token.recording, token.scopes) = (id, scopes.map(\.rawValue))
      if convert { token.convert = true }
    case .upload(let bytes):
      guard key.scopes.contains(.write) else { throw AccessError.missingScope(.write) }
      token.upload = true
      if let bytes { token.limits = AccessToken.Limits(maxBytes: bytes) }
    }
    let context = context
    let secret = try await context.work.run { try context.access.secrets.signing() }
    let answer = Answer(
      token: try token.text(signedWith: secret), expiresAt: Timestamp(milliseconds: end * 1000).rfc3339)
    return try .json(.created, answer, fields: ["Cache-Control": "no-store"])
  }

  /// What a token is to be for.
  private enum Subject {
    case recording(String, [Scope], convert: Bool)
    case upload(maxBytes: Int64?)
  }

  private static func subject(_ members: JSONMembers) throws -> Subject {
    let recording = try members.string("recording")
    let isUpload = try members.flag("upload") ?? false
    let convert = try members.flag("convert")
    let bytes = try members.number("max_bytes", in: 1...0x1p53)
    guard isUpload else {
      guard let recording else { throw members.invalid("recording", .givenWithout("upload")) }
      guard bytes == nil else { throw members.invalid("max_bytes", .givenWith("upload")) }
      return .recording(recording, try scopes(members), convert: convert ?? false)
    }
    for member in ["recording", "scopes", "convert"] where members.value(member) != nil {
      throw members.invalid(member, .leftOutWith("upload"))
    }
    return .upload(maxBytes: bytes.map { Int64($0) })
  }

  private static let grantable: [Scope] = [.read, .write, .delete]

  private static func scopes(_ members: JSONMembers) throws -> [Scope] {
    guard let value = members.value("scopes") else { return [.read] }
    let expected = Expectation.listOf(grantable.map(\.rawValue))
    guard case .array(let elements) = value, !elements.isEmpty else { throw members.invalid("scopes", expected) }
    var scopes: [Scope] = []
    for element in elements {
      guard case .string(let name) = element, let scope = Scope(rawValue: name), grantable.contains(scope),
        !scopes.contains(scope)
      else { throw members.invalid("scopes", expected) }
      scopes.append(scope)
    }
    return scopes
  }
}
