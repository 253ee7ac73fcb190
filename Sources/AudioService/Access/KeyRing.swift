import Storage

/// The keys that are valid now, by their secrets and by their IDs.
///
/// A secret is looked up by the first 8 bytes of its digest, and then the whole digest is compared in constant time.
/// Nobody can choose a digest, so how long the lookup takes says nothing about the secret of a key.
final class KeyRing: Sendable {
  private final class Table: Sendable {
    let byDigest: [UInt64: [Key]]
    let byID: [String: Key]
    /// The limits that the keys of a tenant name, from those that never expire; and those that do.
    let limits: [Tenant: (lasting: TenantLimits, expiring: [Key])]

    init(_ file: KeyFile) {
      var (byDigest, byID, limits) = (
        [UInt64: [Key]](), [String: Key](), [Tenant: (lasting: TenantLimits, expiring: [Key])]()
      )
      for key in file.keys {
        byDigest[Self.start(of: key.hash), default: []].append(key)
        byID[key.id] = key
        if key.expiresAt != nil {
          limits[key.tenant, default: (TenantLimits(), [])].expiring.append(key)
        } else {
          limits[key.tenant, default: (TenantLimits(), [])].lasting.join(key.limits)
        }
      }
      (self.byDigest, self.byID, self.limits) = (byDigest, byID, limits)
    }

    static func start(of digest: [UInt8]) -> UInt64 { digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
  }

  private let file: WatchedFile<Table>
  private let clock: AccessClock

  /// Reads the file of keys. Throws `KeyFileError`.
  init(path: String, clock: AccessClock) throws {
    self.clock = clock
    file = try WatchedFile(path: path) { Table(try KeyFile(path: $0)) }
  }

  /// Returns the key with this secret, unless it has expired.
  func key(for secret: [UInt8]) -> Key? {
    guard secret.count <= Key.mostSecretBytes else { return nil }
    let digest = Key.digest(of: secret)
    let candidates = file.content.byDigest[Table.start(of: digest)] ?? []
    return candidates.first { $0.matches(digest) }.flatMap(current)
  }

  /// Returns the key with this ID, unless it has expired.
  func key(id: String) -> Key? { file.content.byID[id].flatMap(current) }

  /// Returns the limits of a tenant, as its valid keys name them.
  func limits(of tenant: Tenant) -> TenantLimits {
    guard let named = file.content.limits[tenant] else { return TenantLimits() }
    var limits = named.lasting
    for key in named.expiring.compactMap(current) { limits.join(key.limits) }
    return limits
  }

  /// The number of keys, expired ones too.
  var count: Int { file.content.byID.count }

  /// Reads the file again if it has changed; see `WatchedFile.reload`.
  @discardableResult
  func reload() throws -> Bool { try file.reload() }

  private func current(_ key: Key) -> Key? { key.isCurrent(clock) ? key : nil }
}
