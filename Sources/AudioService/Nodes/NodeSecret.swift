// How the nodes of a cluster know each other. A request from one node to another has the field
//
//   Authorization: Stillwave-Node t=1764180382,v1=<64 lower-case hexadecimal digits>
//
// with the time by the catalog's clock, in seconds since 1970, and the HMAC-SHA256 under the cluster's secret of
//
//   "stillwave-node-v1" LF method LF path and query LF time
//
// It's valid for a minute before and after its time, by the catalog's clock of the node that receives it. Until then it
// can be repeated, which only reads the same waveform again. A node that tells the others its address for an attempt
// adds the HMAC-SHA256 of
//
//   "stillwave-node-address-v1" LF job LF attempt and nonce LF address
//
// since everyone who may connect to the database can send such messages. Both have 64 lower-case hexadecimal digits.

import HTTP
import Jobs
import Storage

/// The secret that the nodes of a cluster share. Its descriptions don't show it.
struct NodeSecret: Sendable, CustomStringConvertible, CustomReflectable {
  private let key: [UInt8]

  /// Minimum length of the secret in bytes, so that it can't be guessed.
  static let leastBytes = 32
  /// How much the time of a request may differ, in seconds.
  static let toleranceSeconds: Int64 = 60

  private static let scheme = "Stillwave-Node "

  /// Returns nil if the secret is shorter than `leastBytes`.
  init?(_ key: [UInt8]) {
    guard key.count >= Self.leastBytes else { return nil }
    self.key = key
  }

  /// The same text for every secret, so that none appears in logs.
  var description: String { "(secret)" }
  /// Empty, for the same reason.
  var customMirror: Mirror { Mirror(self, children: []) }

  /// Returns the value of `Authorization` for a request at `time`. `target` is its path and query.
  func authorization(_ method: HTTPMethod, _ target: String, at time: Timestamp) -> String {
    let seconds = "\(time.milliseconds / 1000)"
    return "\(Self.scheme)t=\(seconds),v1=\(digest(method, target, seconds))"
  }

  /// Whether a node that has the secret has sent this request within a minute of `time`.
  func permits(_ request: HTTPRequest, at time: Timestamp) -> Bool {
    guard let field = request.fields["Authorization"], field.hasPrefix(Self.scheme) else { return false }
    let parts = field.dropFirst(Self.scheme.count).split(separator: ",", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].hasPrefix("t="), parts[1].hasPrefix("v1="),
      let seconds = Int64(parts[0].dropFirst(2)),
      (time.milliseconds / 1000 - Self.toleranceSeconds...time.milliseconds / 1000 + Self.toleranceSeconds)
        .contains(seconds)
    else { return false }
    let right = digest(request.method, request.target.path + request.target.query.queryText, "\(seconds)")
    return Self.areEqual(String(parts[1].dropFirst(3)), right)
  }

  private func digest(_ method: HTTPMethod, _ target: String, _ seconds: String) -> String {
    digest(["stillwave-node-v1", method.rawValue, target, seconds])
  }

  private func digest(_ lines: [String]) -> String {
    HMACSHA256.hexDigest(of: Array(lines.joined(separator: "\n").utf8), key: key)
  }

  private static func areEqual(_ one: String, _ other: String) -> Bool {
    Array(one.utf8).span.equalsInConstantTime(Array(other.utf8).span)
  }
}

// MARK: - Addresses

extension NodeSecret: AddressProof {
  func proof(of address: String, for token: AttemptToken) -> String {
    digest(["stillwave-node-address-v1", token.job.text, token.shortName, address])
  }

  func isProof(_ proof: String, of address: String, for token: AttemptToken) -> Bool {
    Self.areEqual(proof, self.proof(of: address, for: token))
  }
}
