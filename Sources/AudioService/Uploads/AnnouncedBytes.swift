import Storage
import Synchronization

/// The bytes of uploads under way in single requests, by tenant. They count toward what the tenant may store, as do
/// those that resumable uploads have announced, which the catalog knows.
final class AnnouncedBytes: Sendable {
  private let bytes = Mutex<[Tenant: Int64]>([:])

  /// The bytes of one upload. They count until it is stored or has failed.
  final class Share: Sendable {
    private let table: AnnouncedBytes
    private let tenant: Tenant
    /// How many bytes the tenant may store and, of these, how many its uploads under way may have; nil for any.
    private let limit: (all: Int64, left: Int64)?
    private let bytes = Mutex<Int64>(0)

    fileprivate init(_ table: AnnouncedBytes, _ tenant: Tenant, limit: (all: Int64, left: Int64)?) {
      (self.table, self.tenant, self.limit) = (table, tenant, limit)
    }

    deinit { end() }

    /// Adds bytes. Throws `.limitReached` instead if all uploads under way have more than is left.
    func grow(by more: Int64) throws(StorageError) {
      guard let limit else { return }
      let fits = table.add(more, to: tenant, left: limit.left)
      guard fits else { throw .limitReached("stored_bytes", limit: limit.all) }
      bytes.withLock { $0 += more }
    }

    /// Removes bytes that something else counts from now on.
    func shrink(by less: Int64) {
      let own = bytes.withLock { bytes in
        let own = min(bytes, less)
        bytes -= own
        return own
      }
      table.remove(own, from: tenant)
    }

    /// Ends the share, when its bytes are about to be stored.
    func end() { shrink(by: .max) }
  }

  /// Returns a share without any bytes yet.
  /// - Parameter limit: how many bytes the tenant may store, and how many of these are left; nil for any.
  func share(of tenant: Tenant, limit: (all: Int64, left: Int64)?) -> Share { Share(self, tenant, limit: limit) }

  private func add(_ more: Int64, to tenant: Tenant, left: Int64) -> Bool {
    bytes.withLock { bytes in
      let (sum, overflow) = bytes[tenant, default: 0].addingReportingOverflow(more)
      guard !overflow, sum <= left else { return false }
      bytes[tenant] = sum
      return true
    }
  }

  private func remove(_ own: Int64, from tenant: Tenant) {
    guard own > 0 else { return }
    bytes.withLock { bytes in
      let rest = bytes[tenant, default: 0] - own
      bytes[tenant] = rest > 0 ? rest : nil
    }
  }
}
