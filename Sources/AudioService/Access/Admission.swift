import Jobs
import Storage
import Synchronization

/// A credential that was found valid.
///
/// It counts only for a request with the same credential in the same place, only until the files of keys or secrets
/// change, and only until it expires.
final class Admission: Sendable {
  /// A credential, and where it was.
  enum Credential {
    /// The value of the field Authorization.
    case field(ArraySlice<UInt8>)
    /// The value of the parameter `token`.
    case parameter([UInt8])

    fileprivate var isParameter: Bool { if case .parameter = self { true } else { false } }

    fileprivate var bytes: ArraySlice<UInt8> {
      switch self {
      case .field(let bytes): bytes
      case .parameter(let bytes): bytes[...]
      }
    }
  }

  /// What the credential grants.
  let grant: Caller.Grant
  /// The client that requests with it count toward.
  let client: Client
  /// The limits of its tenant.
  let limits: KeyRing.NamedLimits?
  private let credential: [UInt8]
  private let isParameter: Bool
  private let generation: UInt64

  /// `generation` is that of the files, read before the credential was looked up.
  init(_ grant: Caller.Grant, limits: KeyRing.NamedLimits?, for credential: Credential, generation: UInt64) {
    (self.grant, self.limits, self.generation) = (grant, limits, generation)
    (self.credential, isParameter) = (Array(credential.bytes), credential.isParameter)
    client = Client(grant.tenant)
  }

  /// Whether it counts for a request with this credential. Takes the same time wherever the credentials differ.
  func covers(_ credential: Credential, generation: UInt64, _ clock: AccessClock) -> Bool {
    let own = self.credential
    return generation == self.generation && credential.isParameter == isParameter
      && credential.bytes.span.equalsInConstantTime(own.span) && grant.isCurrent(clock)
  }

  // MARK: What has become of it

  /// Whether the credential would still be admitted.
  func isStillValid(_ access: Access) -> Bool { presentGrant(access)?.isCurrent(access.clock) ?? false }

  /// Whether the credential has been taken away or restricted. One that has only reached its own end hasn't: what was
  /// begun before may still be answered.
  func isWithdrawn(_ access: Access) -> Bool {
    guard let now = presentGrant(access) else { return true }
    return now.end != grant.end && !now.isCurrent(access.clock)
  }

  /// What the credential grants by the present files; nil if it's in them no longer, or grants less. Costs an atomic
  /// load unless they have changed.
  private func presentGrant(_ access: Access) -> Caller.Grant? {
    guard access.generation != generation, let key = grant.key else { return grant }
    guard let present = access.ring?.key(id: key.id), present.tenant == key.tenant,
      present.scopes.isSuperset(of: key.scopes)
    else { return nil }
    switch grant {
    case .everything: return grant
    case .key(_, let secret): return present.secret(with: secret.hash).map { .key(present, $0) }
    case .token(let token, _): return token.isSigned(byOneOf: access.secrets.all) ? .token(token, present) : nil
    }
  }
}

/// Remembers credentials that were found valid: hashing one and looking it up for each request took 6.5 % of a slice's
/// instructions.
final class Admissions: Sendable {
  /// One for each value of `place`; the latest stays. There are many, so that hardly ever two keys take turns in one.
  private let kept = Mutex([Admission?](repeating: nil, count: 4096))
  private let seed = UInt64.random(in: .min ... .max)

  /// Returns what a credential was found to grant; nil if it must be looked up.
  func find(_ credential: Admission.Credential, generation: UInt64, _ clock: AccessClock) -> Admission? {
    let place = place(of: credential)
    guard let found = kept.withLock({ $0[place] }), found.covers(credential, generation: generation, clock) else {
      return nil
    }
    return found
  }

  /// Remembers what a credential grants.
  func keep(_ admission: Admission, for credential: Admission.Credential) {
    let place = place(of: credential)
    kept.withLock { $0[place] = admission }
  }

  /// A hash (FNV-1a) from a random start, so that how long a request takes tells nothing about other credentials.
  private func place(of credential: Admission.Credential) -> Int {
    let bytes = credential.bytes
    var hash = seed
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return Int(hash >> 52)
  }
}
