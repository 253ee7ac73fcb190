import HTTP

extension JSONMembers {
  /// `callback_url`, judged by what can be known before it is called: a name is looked up when it is.
  func callbackURL(_ configuration: Configuration) throws -> String? {
    guard let text = try string("callback_url", upTo: WebhookAddress.lengthLimit) else { return nil }
    guard let address = WebhookAddress(text) else {
      throw invalid("callback_url", "an absolute http or https URL in ASCII, without a user and without a fragment")
    }
    guard configuration.webhookSecret != nil else {
      throw Problem(
        .unprocessableContent, code: "webhooks_off",
        detail: "This service sends no webhooks: it was started without --webhook-secret, which signs them.",
        parameter: "callback_url")
    }
    if let literal = address.literal, !WebhookNetworks(allowed: configuration.webhookNetworks).permits(literal) {
      throw Problem(
        .unprocessableContent, code: "callback_refused",
        detail: "“callback_url” is an address inside a private network, which this service doesn't call.",
        parameter: "callback_url")
    }
    return text
  }
}
