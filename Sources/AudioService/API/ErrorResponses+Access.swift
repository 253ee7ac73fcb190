import HTTP

// The table's part about keys, tokens, and limits.

extension AccessError {
  /// The response to the client. The one to an invalid key says nothing about why.
  var problem: Problem {
    switch self {
    case .missingKey:
      Problem(
        "unauthorized", "This needs a key: send “Authorization: Bearer <key>”, or a token as “?token=”.",
        fields: ["WWW-Authenticate": "Bearer realm=\"stillwave\""])
    case .invalidKey:
      Problem(
        "unauthorized", "The key or token isn't valid, or has expired.",
        fields: ["WWW-Authenticate": "Bearer realm=\"stillwave\", error=\"invalid_token\""])
    case .tooManyInvalidKeys(let seconds):
      Problem(
        "limit_invalid_keys", "This client has sent too many keys or tokens that aren't valid. Try again later.",
        fields: ["Retry-After": "\(seconds)"])
    case .missingScope(let scope): Problem("missing_scope", "This needs a key with the scope “\(scope.rawValue)”.")
    case .notInToken(let parameter):
      Problem("missing_scope", "The token isn't for this. Use a key, or another token.", parameter: parameter)
    case .noConversion:
      Problem(
        "missing_scope",
        "The recording isn't kept in this format, and the token may not start conversions: it was minted without "
          + "“convert”.", parameter: "format")
    case .tokenIsSpent: Problem("token_used", "The token was for one upload, which has been made.")
    case .keysAreOff: Problem("keys_off", "This service has no keys, so everyone may use it without a token.")
    }
  }
}
