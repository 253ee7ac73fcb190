import HTTP
import Testing

@testable import AudioService
@testable import Storage

/// How nodes prove to each other that they have the cluster's secret.
@Suite struct NodeSecretTests {
  private static let path = "/v1/recordings/x/waveform"
  private static let now = Timestamp(milliseconds: 1_764_180_382_123)
  private let secret: NodeSecret

  init() throws { secret = try #require(NodeSecret(Array("an example of thirty-two bytes..".utf8))) }

  private func permits(
    _ authorization: String?, method: HTTPMethod = .get, _ target: String = path, after seconds: Int64 = 0
  ) throws -> Bool {
    var fields: HTTPFields = [:]
    fields["Authorization"] = authorization
    let request = try HTTPRequest(method: method, target: target, fields: fields)
    return secret.permits(request, at: Timestamp(milliseconds: Self.now.milliseconds + seconds * 1000))
  }

  @Test("the proof is the HMAC of the lines that are described")
  func value() throws {
    let text = "stillwave-node-v1\nGET\n\(Self.path)?width=9\n1764180382"
    let digest = HMACSHA256.hexDigest(
      of: Array(text.utf8), key: Array("an example of thirty-two bytes..".utf8))
    let proof = secret.authorization(.get, Self.path + "?width=9", at: Self.now)
    #expect(proof == "Stillwave-Node t=1764180382,v1=\(digest)")
  }

  @Test func aProofHoldsForItsRequestOnlyAndForAMinute() throws {
    let proof = secret.authorization(.get, Self.path, at: Self.now)
    for seconds: Int64 in [-60, 0, 60] { #expect(try permits(proof, after: seconds)) }
    for seconds: Int64 in [-62, -61, 61, 86_400] { #expect(try !permits(proof, after: seconds)) }
    #expect(try !permits(proof, method: .head))
    for other in ["s", "?a=b", "/"] { #expect(try !permits(proof, Self.path + other)) }
    let asked = secret.authorization(.get, Self.path + "?a=%2B%20x&b=", at: Self.now)
    #expect(try permits(asked, Self.path + "?a=%2b+x&b"), "the same query, written differently")
    for other in ["", "?a=%2B%20x", "?b=&a=%2B%20x"] { #expect(try !permits(asked, Self.path + other)) }
    let other = try #require(NodeSecret(Array("an example of thirty-two bytes,.".utf8)))
    #expect(try !permits(other.authorization(.get, Self.path, at: Self.now)))
  }

  @Test func anAddressIsProvenForOneAttempt() {
    let token = AttemptToken(job: JobID(), attempt: 1, nonce: "0123456789abcdef")
    let proof = secret.proof(of: "10.0.0.1:8090", for: token)
    let text = "stillwave-node-address-v1\n\(token.job)\n1-0123456789abcdef\n10.0.0.1:8090"
    #expect(
      proof == HMACSHA256.hexDigest(of: Array(text.utf8), key: Array("an example of thirty-two bytes..".utf8)))
    #expect(secret.isProof(proof, of: "10.0.0.1:8090", for: token))
    let next = AttemptToken(job: token.job, attempt: 2, nonce: token.nonce)
    #expect(
      !secret.isProof(proof, of: "10.0.0.1:8091", for: token) && !secret.isProof(proof, of: "10.0.0.1:8090", for: next))
  }

  @Test("anything else is no proof")
  func malformed() throws {
    let proof = secret.authorization(.get, Self.path, at: Self.now)
    let digest = String(proof.suffix(64))
    for text in [
      nil, "", "Bearer x", "Stillwave-Node", "Stillwave-Node ", proof + " ", proof + ",v1=\(digest)",
      String(proof.dropLast()), proof.uppercased(), "Stillwave-Node v1=\(digest),t=1764180382",
      "Stillwave-Node t=,v1=\(digest)", "Stillwave-Node t=99999999999999999999,v1=\(digest)",
      "Stillwave-Node t=\(Int64.min),v1=\(digest)", "Stillwave-Node t=1764180382,v1=",
    ] { #expect(try !permits(text), "\(text ?? "nothing")") }
  }

  @Test func aSecretThatIsTooShortIsNone() {
    #expect(NodeSecret([UInt8](repeating: 1, count: 31)) == nil)
    #expect(!"\(secret)".contains("example") && !"\([secret])".contains("97"))
  }
}
