// Cache-Control (RFC 9111) of responses that never change: slices, pictures and audio of finished recordings.
//
//   private   private, max-age=31536000, immutable
//   public    public, max-age=31536000, s-maxage=3600, immutable
//
// A shared cache doesn't notice that a recording is deleted until it asks again, so s-maxage limits how long it goes on
// serving one. Asking costs a 304. Everything else is no-store or no-cache in both cases.

/// Which caches may keep responses that never change.
package enum CacheScope: String, Sendable, CaseIterable {
  /// Those of browsers.
  case `private`
  /// Also those that clients share, such as a CDN.
  case `public`

  /// The time for which a shared cache may serve a response without asking whether it still exists, in seconds.
  static let sharedSeconds = 3600

  /// The value of `Cache-Control` of a response that never changes.
  var immutable: String { self == .private ? Self.privateImmutable : Self.publicImmutable }

  private static let privateImmutable = "private, max-age=31536000, immutable"
  private static let publicImmutable = "public, max-age=31536000, s-maxage=\(sharedSeconds), immutable"
}
