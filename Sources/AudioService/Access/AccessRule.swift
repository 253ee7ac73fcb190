/// Who may use a route. Without keys, everyone may use every route.
///
/// A token gives access only to routes whose rule mentions it, and there only to what it was minted for.
enum AccessRule: Sendable, Hashable {
  /// Everyone, even with keys: nothing here belongs to a tenant.
  case everyone
  /// A key with the scope `admin`, or a request to the operators' own port.
  case operators
  /// A key with this scope.
  case key(Scope)
  /// Any key.
  case anyKey
  /// A key with this scope, or a token with it for the recording `{id}`.
  case recording(Scope)
  /// A key with the scope `read`, or a token with it for a recording that the job `{id}` reads or makes.
  case jobEvents
  /// A key with the scope `write`, or a token for an upload.
  case newUpload
  /// A key with the scope `write` (`delete` for the method DELETE, also `read` for HEAD), or the token that the upload
  /// was begun with.
  case upload
}
