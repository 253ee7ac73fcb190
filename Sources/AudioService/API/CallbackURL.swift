import HTTP
import Webhooks

extension JSONMembers {
  /// `callback_url`, judged by what can be known before it is called: a name is looked up when it is.
  func callbackURL(_ settings: WebhookSettings) throws -> String? {
    guard let text = try string("callback_url", upTo: WebhookSettings.urlLengthLimit) else { return nil }
    do throws(WebhookRefusal) { try settings.check(url: text) } catch {
      switch error {
      case .malformed:
        throw invalid("callback_url", "an absolute http or https URL in ASCII, without a user and without a fragment")
      case .off:
        throw Problem(
          .unprocessableContent, code: "webhooks_off",
          detail: "This service sends no webhooks: it was started without --webhook-secret, which signs them.",
          parameter: "callback_url")
      case .privateNetwork:
        throw Problem(
          .unprocessableContent, code: "callback_refused",
          detail: "“callback_url” is an address inside a private network, which this service doesn't call.",
          parameter: "callback_url")
      }
    }
    return text
  }
}
