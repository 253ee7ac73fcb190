// A token gives someone without a key access to one recording, or lets them upload one file:
//
//   base64url(payload) "." base64url(HMAC-SHA256(secret, "stillwave-token-v1." payload))
//
// without padding (RFC 4648 §5), where payload is a JSON object:
//
//   id          22 characters from 128 random bits
//   key         the ID of the key that minted it; the token ends with it, but not with its secret
//   tenant      the tenant of that key
//   exp         when it ends, in seconds since 1970
//   recording   the recording that it is for, with scopes: any of read, write, delete; convert: true if the token may
//               start conversions
//   upload      or true: it is for one upload, with limits: {"max_bytes": …}
//
// The whole text is compared with the one that the secret gives, not decoded bytes, so that there is only one text for
// each token: the last character of base64 has bits that decoding ignores.

import FoundationEssentials
import Storage

/// What a token allows, as in its payload.
struct AccessToken: Sendable, Equatable, Codable {
  /// The bounds of an upload.
  struct Limits: Sendable, Equatable, Codable {
    var maxBytes: Int64?

    private enum CodingKeys: String, CodingKey { case maxBytes = "max_bytes" }
  }

  var id: String
  var key: String
  var tenant: Tenant
  var exp: Int64
  var recording: RecordingID?
  var scopes: [String]?
  var convert: Bool?
  var upload: Bool?
  var limits: Limits?
  /// The secret that it was signed with; nil if its text was not read. Not in the payload.
  private var signer: [UInt8]?

  private enum CodingKeys: CodingKey { case id, key, tenant, exp, recording, scopes, convert, upload, limits }

  /// Maximum length of a token, in bytes. Those of this program are shorter than half of that.
  static let byteLimit = 2048
  /// The longest time for which a token may be valid, in seconds.
  static let longestSeconds = 7 * 86_400

  private static let prefix = Array("stillwave-token-v1.".utf8)

  /// Returns the token's text, signed with a secret.
  func text(signedWith secret: [UInt8]) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let payload = Array(try encoder.encode(self))
    return Base64URL.text(payload) + "." + Self.signature(of: payload, secret)
  }

  /// Reads a token. Fails unless one of the secrets has signed it; says nothing about when it ends.
  init?(_ text: [UInt8], secrets: [[UInt8]]) {
    guard text.count <= Self.byteLimit, let dot = text.firstIndex(of: UInt8(ascii: ".")),
      let payload = Base64URL.bytes(text[..<dot]), Base64URL.text(payload).utf8.elementsEqual(text[..<dot])
    else { return nil }
    let signature = Array(text[(dot + 1)...])
    var signer: [UInt8]?
    for secret in secrets {
      let right = Array(Self.signature(of: payload, secret).utf8)
      if signature.span.equalsInConstantTime(right.span) { signer = secret }
    }
    guard signer != nil, let token = try? JSONDecoder().decode(Self.self, from: Data(payload)) else { return nil }
    self = token
    self.signer = signer
  }

  init(id: String, key: Key, exp: Int64) {
    (self.id, self.key, tenant, self.exp) = (id, key.id, key.tenant, exp)
  }

  /// How far the clock may be behind that of the token's maker, in seconds.
  private static let clockTolerance: Int64 = 60

  /// Whether it has not expired, and isn't valid for longer than a token may be.
  func isCurrent(at now: Timestamp) -> Bool {
    let longest = Int64(Self.longestSeconds) + Self.clockTolerance
    guard exp > 0, exp - now.milliseconds / 1000 <= longest else { return false }
    return now.milliseconds < exp * 1000
  }

  /// Whether the secret that it was signed with still verifies tokens.
  func isSigned(byOneOf secrets: [[UInt8]]) -> Bool { signer.map(secrets.contains) ?? false }

  /// Whether a key is the one that minted it. The key's secret may be another one by now.
  func isMinted(by key: Key) -> Bool { key.id == self.key && key.tenant == tenant }

  private static func signature(of payload: [UInt8], _ secret: [UInt8]) -> String {
    Base64URL.text(HMACSHA256.digest(of: prefix + payload, key: secret))
  }

  /// The token as it is recorded when it has been used.
  var spent: UploadToken { UploadToken(id: id, expiresAt: Timestamp(milliseconds: exp * 1000)) }

  /// Whether it is for a recording and allows this with it.
  func allows(_ scope: Scope, of id: RecordingID?) -> Bool {
    id != nil && recording == id && scopes?.contains(scope.rawValue) == true
  }
}

/// Base64 with the alphabet for URLs and without padding (RFC 4648 §5).
enum Base64URL {
  /// Returns the text of some bytes.
  static func text(_ bytes: [UInt8]) -> String {
    String(
      decoding: Data(bytes).base64EncodedString().utf8.compactMap { byte -> UInt8? in
        switch byte {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        case UInt8(ascii: "="): nil
        default: byte
        }
      }, as: UTF8.self)
  }

  /// Returns the bytes of a text; nil if it isn't base64. More than one text may have the same bytes.
  static func bytes(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    guard !text.contains(where: { "+/=".utf8.contains($0) }) else { return nil }
    var usual = text.map { byte -> UInt8 in
      switch byte {
      case UInt8(ascii: "-"): UInt8(ascii: "+")
      case UInt8(ascii: "_"): UInt8(ascii: "/")
      default: byte
      }
    }
    usual += [UInt8](repeating: UInt8(ascii: "="), count: (4 - usual.count % 4) % 4)
    return Data(base64Encoded: Data(usual)).map { Array($0) }
  }
}
