import CCurl

/// The destination of a webhook: an http or https URL. libcurl both parses the URL and makes the call, so that both use
/// the same host.
struct WebhookAddress: Sendable, Equatable {
  let text: String
  /// Host and port, to which the limit on calls at once applies.
  let authority: String
  /// The host's address if it's an address and not a name, also in spellings such as `0x7f.1`.
  let literal: NetworkAddress?

  /// Maximum length of a URL, in bytes.
  static let lengthLimit = 2000

  /// Parses a URL. Returns nil unless it is an absolute http or https URL in ASCII, with a host and without a user or a
  /// fragment.
  init?(_ text: String) {
    guard text.utf8.count <= Self.lengthLimit, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }),
      let url = unsafe curl_url()
    else { return nil }
    defer { unsafe curl_url_cleanup(url) }
    guard unsafe curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK,
      let scheme = unsafe Self.part(CURLUPART_SCHEME, of: url), scheme == "http" || scheme == "https",
      let host = unsafe Self.part(CURLUPART_HOST, of: url), !host.isEmpty,
      let port = unsafe Self.part(CURLUPART_PORT, of: url, UInt32(CURLU_DEFAULT_PORT)),
      [CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_FRAGMENT, CURLUPART_ZONEID].allSatisfy({
        unsafe Self.part($0, of: url) == nil
      })
    else { return nil }
    self.text = text
    authority = host + ":" + port
    literal = NetworkAddress(host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host)
  }

  @unsafe
  private static func part(_ part: CURLUPart, of url: OpaquePointer, _ flags: UInt32 = 0) -> String? {
    var value: UnsafeMutablePointer<CChar>?
    guard unsafe stillwave_curl_url_get(url, part, &value, flags) == CURLUE_OK, let value = unsafe value else {
      return nil
    }
    defer { unsafe curl_free(value) }
    return unsafe String(cString: value)
  }
}
