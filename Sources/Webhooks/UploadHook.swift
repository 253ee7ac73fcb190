import Dispatch
import Storage

/// The operator's own service that decides about uploads. Its URL comes from the operator, so it may be anywhere.
package final class UploadHook: Sendable {
  /// What the service has answered.
  package enum Verdict: Sendable, Equatable {
    /// A status of 2xx.
    case accepted
    /// A status of 4xx.
    case refused(Int)
    /// No answer in time, or one that decides nothing; the text is for the log.
    case failed(String)
  }

  private let address: WebhookAddress
  private let settings: WebhookSettings
  private let timeoutSeconds: Double
  private let time: @Sendable () -> Timestamp
  private static let everywhere = WebhookNetworks(
    allowed: ["0.0.0.0/0", "::/0"].compactMap { Network($0) })

  /// Whether a text is a URL that can be asked.
  package static func isURL(_ text: String) -> Bool { WebhookAddress(text) != nil }

  /// Creates a hook that asks with the secret and the authorities of webhooks. Fails unless `url` is an absolute http
  /// or https URL and there is a secret. Requests are signed with the time of the clock `time`.
  package init?(
    url: String, _ settings: WebhookSettings, timeoutSeconds: Double, time: @escaping @Sendable () -> Timestamp
  ) {
    guard let address = WebhookAddress(url), settings.secret != nil else { return nil }
    (self.address, self.settings, self.timeoutSeconds, self.time) = (address, settings, timeoutSeconds, time)
  }

  /// Sends `body` and waits for the answer, for `timeoutSeconds` at most, on a thread of its own. Reads no more than
  /// 16 KiB of the answer, and follows no redirect.
  package func ask(_ body: [UInt8]) async -> Verdict {
    await withCheckedContinuation { continuation in
      DispatchQueue(label: "hook").async { [self] in continuation.resume(returning: verdict(body)) }
    }
  }

  private func verdict(_ body: [UInt8]) -> Verdict {
    guard let secret = settings.secret else { return .failed("there is no secret to sign with") }
    let outcome = WebhookCall.post(
      body, to: address.text,
      fields: [
        "Content-Type: application/json", "Expect:", "Stillwave-Signature: \(secret.signature(of: body, at: time()))",
      ],
      seconds: timeoutSeconds, networks: Self.everywhere, authorities: settings.authorities)
    switch outcome {
    case .answered(let status) where (200..<300).contains(status): return .accepted
    case .answered(let status) where (400..<500).contains(status): return .refused(status)
    case .answered(let status): return .failed("the status was \(status)")
    case .refused: return .failed("the address can't be called")
    case .failed(let reason): return .failed(reason)
    }
  }
}
