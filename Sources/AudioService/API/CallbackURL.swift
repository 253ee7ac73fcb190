import HTTP
import Webhooks

extension JSONMembers {
  /// `callback_url`, judged by what can be known before it is called: a name is looked up when it is.
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
