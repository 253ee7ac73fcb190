import Storage

extension UploadSession {
  /// What a session uses of the service, and when an upload expires.
  struct Dependencies: Sendable {
    let configuration: Configuration
    let catalog: Catalog
    let store: MediaStore
    let admission: UploadAdmission
    let metrics: Metrics

    /// When an upload expires whose last byte came at `instant`.
    func expiry(from instant: Timestamp) -> Timestamp { Self.expiry(from: instant, configuration.uploadExpirySeconds) }

    /// The same for an upload without a byte.
    func emptyExpiry(from instant: Timestamp) -> Timestamp {
      Self.expiry(from: instant, min(configuration.emptyUploadExpirySeconds, configuration.uploadExpirySeconds))
    }

    private static func expiry(from instant: Timestamp, _ seconds: Double) -> Timestamp {
      Timestamp(milliseconds: instant.milliseconds + Int64(seconds * 1000))
    }
  }
}
