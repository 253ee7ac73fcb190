import Jobs
import Storage

extension UploadSession {
  /// The parts of the service that a session uses, and the rules for an upload's expiry.
  struct Dependencies: Sendable {
    let configuration: Configuration
    let catalog: Catalog
    let blobs: Blobs
    let spool: any UploadSpool
    let admission: UploadAdmission
    let metrics: Metrics
    let accounts: TenantAccounts
    let storeWork: StoreQueue
    let heldKeys: HeldKeys

    /// When an upload expires that received its last byte at `instant`.
    func expiry(from instant: Timestamp) -> Timestamp { Self.expiry(from: instant, configuration.uploadExpirySeconds) }

    /// When an upload expires that was created at `instant` and has no bytes yet.
    func emptyExpiry(from instant: Timestamp) -> Timestamp {
      Self.expiry(from: instant, min(configuration.emptyUploadExpirySeconds, configuration.uploadExpirySeconds))
    }

    private static func expiry(from instant: Timestamp, _ seconds: Double) -> Timestamp {
      Timestamp(milliseconds: instant.milliseconds + Int64(seconds * 1000))
    }
  }
}
