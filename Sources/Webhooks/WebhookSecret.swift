import Storage

/// The key that signs webhooks. Its descriptions don't show it.
package struct WebhookSecret: Sendable, CustomStringConvertible, CustomReflectable {
  private let key: [UInt8]

  /// Minimum length of a secret in bytes, so that it can't be guessed.
  package static let leastBytes = 16
  /// Whether webhooks can be sent on this machine: they need libcurl, which is loaded on first use.
  package static var canBeUsed: Bool { WebhookCall.isReady }

  /// Returns nil if the text is shorter than `leastBytes`.
  package init?(_ text: String) {
    guard text.utf8.count >= Self.leastBytes else { return nil }
    key = Array(text.utf8)
  }

  /// Not the secret, so that it doesn't appear in logs.
  package var description: String { "(secret)" }
  /// Empty, for the same reason.
  package var customMirror: Mirror { Mirror(self, children: []) }

  /// The value of `Stillwave-Signature` for a body sent at `time`.
  func signature(of body: [UInt8], at time: Timestamp) -> String {
    let seconds = time.milliseconds / 1000
    return "t=\(seconds),v1=\(HMACSHA256.hexDigest(of: Array("\(seconds).".utf8) + body, key: key))"
  }
}
