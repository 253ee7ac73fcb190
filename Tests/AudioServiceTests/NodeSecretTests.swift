import HTTP
import Testing

@testable import AudioService
@testable import Storage

/// How nodes prove to each other that they have the cluster's secret.
@Suite struct NodeSecretTests {
  private static let path = "/internal/jobs/x/1-0123456789abcdef/pyramid"
  private static let now = Timestamp(milliseconds: 1_764_180_382_123)
  private let secret: NodeSecret

  init() throws { secret = try #require(NodeSecret(Array("an example of thirty-two bytes..".utf8))) }

  private func permits(
    _ authorization: String?, method: HTTPMethod = .get, path: String = path, range: String? = "bytes=0-9",
    after seconds: Int64 = 0
  ) throws -> Bool {
    var fields: HTTPFields = [:]
    fields["Authorization"] = authorization
    fields["Range"] = range
    let request = try HTTPRequest(method: method, target: path, fields: fields)
    return secret.permits(request, at: Timestamp(milliseconds: Self.now.milliseconds + seconds * 1000))
  }

  @Test("the proof is the HMAC of the lines that are described")
  func value() throws {
    let text = "stillwave-node-v1\nGET\n\(Self.path)\nbytes=0-9\n1764180382"
    let digest = HMACSHA256.hexDigest(
      of: Array(text.utf8), key: Array("an example of thirty-two bytes..".utf8))
    let proof = secret.authorization(.get, Self.path, range: "bytes=0-9", at: Self.now)
    #expect(proof == "Stillwave-Node t=1764180382,v1=\(digest)")
  }

  @Test func aProofHoldsForItsRequestOnlyAndForAMinute() throws {
    let proof = secret.authorization(.get, Self.path, range: "bytes=0-9", at: Self.now)
    for seconds: Int64 in [-60, 0, 60] { #expect(try permits(proof, after: seconds)) }
    for seconds: Int64 in [-62, -61, 61, 86_400] { #expect(try !permits(proof, after: seconds)) }
    #expect(try !permits(proof, method: .head))
    #expect(try !permits(proof, path: Self.path + "s"))
    #expect(try !permits(proof, path: Self.path + "?a=b"))
    for range in ["bytes=0-8", "bytes=0-9,11-12", nil] { #expect(try !permits(proof, range: range)) }
    let whole = secret.authorization(.get, Self.path, range: nil, at: Self.now)
    #expect(try permits(whole, range: nil) && !permits(whole))
    let other = try #require(NodeSecret(Array("an example of thirty-two bytes,.".utf8)))
    #expect(try !permits(other.authorization(.get, Self.path, range: "bytes=0-9", at: Self.now)))
  }

  @Test("an answer is proven for its request and its content only")
  func answers() throws {
    let asked = secret.authorization(.get, Self.path, range: "bytes=0-2", at: Self.now)
    let later = secret.authorization(.get, Self.path, range: "bytes=0-2", at: Self.now + 1)
    let range = "bytes 0-2/9"
    let proof = secret.proof(ofAnswer: [1, 10, 3], range: range, to: Self.path, asked)
    let text = Array("stillwave-node-answer-v1\n\(Self.path)\n\(asked)\n\(range)\n".utf8) + [1, 10, 3]
    #expect(proof == HMACSHA256.hexDigest(of: text, key: Array("an example of thirty-two bytes..".utf8)))
    #expect(secret.isProof(proof, ofAnswer: [1, 10, 3], range: range, to: Self.path, asked))
    for (proof, content, range, path, asked) in [
      (nil, [1, 10, 3], range, Self.path, asked), ("", [1, 10, 3], range, Self.path, asked),
      (proof, [1, 10, 2], range, Self.path, asked), (proof, [1, 10, 3], "bytes 0-2/8", Self.path, asked),
      (proof, [1, 10, 3], range, Self.path + "s", asked), (proof, [1, 10, 3], range, Self.path, later),
    ] as [(String?, [UInt8], String, String, String)] {
      #expect(!secret.isProof(proof, ofAnswer: content, range: range, to: path, asked))
    }
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
    let proof = secret.authorization(.get, Self.path, range: "bytes=0-9", at: Self.now)
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
