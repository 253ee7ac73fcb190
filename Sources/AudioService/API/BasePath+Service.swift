import HTTP

extension BasePath {
  /// First segments of the service's own paths. A prefix that begins with one couldn't be distinguished from them.
  static let ownSegments: Set<String> = [
    "v1", "viewer", "healthz", "readyz", "metrics", "openapi.yaml", "problems", "docs", "embed", "oembed",
  ]

  /// Creates the base path that a setting names; nil if it isn't a valid path, or if it begins with one of the
  /// service's own paths.
  package init?(serviceAt text: String) {
    guard let base = BasePath(text), !Self.ownSegments.contains(base.firstSegment ?? "") else { return nil }
    self = base
  }
}
