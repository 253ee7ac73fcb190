/// The operator's settings for webhooks.
package struct WebhookSettings: Sendable {
  /// The key that signs webhooks; nil turns them off.
  package var secret: WebhookSecret?
  /// Private networks that webhooks may call; none by default.
  package var networks: [Network] = []
  /// A PEM file with the certificates of the authorities trusted for webhooks over https; by default the system's.
  package var authorities: String?
  /// Number of attempts before a webhook is given up.
  package var maximumAttempts = 10
  /// The pause after a webhook's first attempt; each further pause is three times as long, up to six hours.
  package var pauseSeconds = 10.0
  /// Time limit of a call in seconds, including name lookups and connecting.
  package var timeoutSeconds = 15.0

  /// How often a process looks for due webhooks in a catalog that others share, in seconds.
  package var seekSeconds = 10.0

  /// All defaults.
  package init() {}

  /// Maximum length of a URL, in bytes.
  package static let urlLengthLimit = WebhookAddress.lengthLimit
  private static let longestPauseSeconds = 6.0 * 3600

  /// Throws if webhooks can't be sent to a URL. Checks an address in the URL but not a name, which each call looks up
  /// before it checks the address.
  package func check(url: String) throws(WebhookRefusal) {
    guard let address = WebhookAddress(url) else { throw .malformed }
    guard secret != nil else { throw .off }
    if let literal = address.literal, !WebhookNetworks(allowed: networks).permits(literal) { throw .privateNetwork }
  }

  /// The pause after `attempts` attempts, 1 or more, in seconds: 1, 3, 9 … times `pauseSeconds`.
  func pause(after attempts: Int) -> Double {
    let growth = (1..<max(attempts, 1)).reduce(1.0) { factor, _ in min(factor * 3, 1e9) }
    return min(pauseSeconds * growth, Self.longestPauseSeconds)
  }
}

/// Why webhooks can't be sent to a URL.
package enum WebhookRefusal: Error, Equatable {
  /// Not an absolute http or https URL in ASCII, or one with a user or a fragment.
  case malformed
  /// There is no secret to sign webhooks with.
  case off
  /// An address in a private network that isn't allowed.
  case privateNetwork
}
