import Jobs
import Storage

/// A credential that was found valid, remembered by the connection that it came on: hashing it and looking it up for
/// each request took 6.5 % of a slice's instructions.
///
/// It counts only for a request with the same credential, only until the files of keys or secrets change, and only
/// until it expires.
final class Admission: Sendable {
  /// What the credential grants.
  let grant: Caller.Grant
  /// The client that requests with it count toward.
  let client: Client
  /// The limits of its tenant.
  let limits: KeyRing.NamedLimits?
  private let credential: [UInt8]
  private let generation: UInt64

  /// `credential` is the value of the field Authorization or of the parameter `token`; `generation` is that of the
  /// files, read before the credential was looked up.
  init(_ grant: Caller.Grant, limits: KeyRing.NamedLimits?, for credential: [UInt8], generation: UInt64) {
    (self.grant, self.limits, self.credential, self.generation) = (grant, limits, credential, generation)
    client = Client(grant.tenant)
  }

  /// Whether it counts for a request with this credential. Takes the same time wherever the credentials differ.
  func covers(_ credential: ArraySlice<UInt8>, generation: UInt64, _ clock: AccessClock) -> Bool {
    let own = self.credential
    return generation == self.generation && credential.span.equalsInConstantTime(own.span) && grant.isCurrent(clock)
  }
}
