import Storage

/// The keys that are valid now, by their secrets and by their IDs.
///
/// A secret is looked up by the first 8 bytes of its digest, and then the whole digest is compared in constant time.
/// Nobody can choose a digest, so how long the lookup takes says nothing about the secret of a key.
final class KeyRing: Sendable {
  /// The limits that the keys of a tenant name.
  final class NamedLimits: Sendable {
    /// Those of keys that never expire.
    private let lasting: TenantLimits
    private let expiring: [Key]

    init(of keys: [Key]) {
      lasting = keys.filter { $0.expiresAt == nil }.reduce(into: TenantLimits()) { $0.join($1.limits) }
      expiring = keys.filter { $0.expiresAt != nil }
    }

    /// Returns the limits of the keys that have not expired.
    func current(_ clock: AccessClock) -> TenantLimits {
      guard !expiring.isEmpty else { return lasting }
      return expiring.filter { $0.isCurrent(clock) }.reduce(into: lasting) { $0.join($1.limits) }
    }
  }

  private final class Table: Sendable {
    let byDigest: [UInt64: [Key]]
    let byID: [String: Key]
    let limits: [Tenant: NamedLimits]

    init(_ file: KeyFile) {
      var (byDigest, byID) = ([UInt64: [Key]](), [String: Key]())
      for key in file.keys {
        for secret in key.secrets { byDigest[Self.start(of: secret.hash), default: []].append(key) }
        byID[key.id] = key
      }
      (self.byDigest, self.byID) = (byDigest, byID)
      limits = Dictionary(grouping: file.keys, by: \.tenant).mapValues { NamedLimits(of: $0) }
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

  /// Returns what a secret grants, unless it or its key has expired.
  func grant(for text: [UInt8]) -> Caller.Grant? {
    guard text.count <= Key.mostSecretBytes else { return nil }
    let digest = Key.digest(of: text)
    for key in file.content.byDigest[Table.start(of: digest)] ?? [] {
      guard let secret = key.secret(with: digest) else { continue }
      let grant = Caller.Grant.key(key, secret)
      return grant.isCurrent(clock) ? grant : nil
    }
    return nil
  }

  /// Returns the key with this ID; it may have expired.
  func key(id: String) -> Key? { file.content.byID[id] }

  /// Returns the limits that the keys of a tenant name; nil if it has no keys.
  func namedLimits(of tenant: Tenant) -> NamedLimits? { file.content.limits[tenant] }

  /// The number of keys, expired ones too.
  var count: Int { file.content.byID.count }

  /// Reads the file again if it has changed; see `WatchedFile.reload`.
  @discardableResult
  func reload() throws -> Bool { try file.reload() }
}
