import HTTP
import Webhooks

extension JSONMembers {
  /// Returns `callback_url` after checking what can be known before calling it. Names are resolved at the time of the
  /// call.
  func callbackURL(_ settings: WebhookSettings) throws -> String? {
    guard let text = try string("callback_url", upTo: WebhookSettings.urlLengthLimit) else { return nil }
    do throws(WebhookRefusal) { try settings.check(url: text) } catch {
      switch error {
      case .malformed: throw invalid("callback_url", .callbackAddress)
      case .off: throw RequestError.webhooksAreOff
      case .privateNetwork: throw RequestError.privateCallback
      }
    }
    return text
  }
}
