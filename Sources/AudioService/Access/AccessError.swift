/// Why a caller may not do what it asks for.
enum AccessError: Error, Equatable, Sendable {
  /// The request has neither a key nor a token.
  case missingKey
  /// The key or token isn't valid, or not any more.
  case invalidKey
  /// There were too many of these lately; seconds.
  case tooManyInvalidKeys(retryAfter: Int)
  /// The key lacks a scope.
  case missingScope(Scope)
  /// The token isn't for this.
  case notInToken(parameter: String?)
  /// The token may not start conversions.
  case noConversion
  /// The upload that the token was for has been made.
  case tokenIsSpent
  /// A token can only be minted by a key, and there are none.
  case keysAreOff
}
