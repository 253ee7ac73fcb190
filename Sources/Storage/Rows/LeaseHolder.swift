import Glibc

/// The process that claims jobs through a catalog.
package struct LeaseHolder: Sendable {
  /// How long leases last if several processes share a catalog.
  package struct Terms: Sendable {
    /// The length of a lease, in seconds.
    package var seconds: Double
    /// The time between renewals, in seconds.
    package var renewalSeconds: Double
    /// A worker that can't renew stops its child this long before the lease ends.
    package var marginSeconds: Double
    /// The files of a lost attempt are removed this long after its lease has ended, because a process that was stopped
    /// may still write one.
    package var graceSeconds: Double

    /// Creates terms.
    package init(
      seconds: Double = 30, renewalSeconds: Double = 5, marginSeconds: Double = 5, graceSeconds: Double = 3600
    ) {
      (self.seconds, self.renewalSeconds) = (seconds, renewalSeconds)
      (self.marginSeconds, self.graceSeconds) = (marginSeconds, graceSeconds)
    }
  }

  /// The name of the node and a random number, which differ for each start of a process.
  package let node: String
  /// The terms of leases; nil if this process has locked the data folder, so that its leases last as long as it does.
  package let terms: Terms?
  /// The clock that decides whether a lease has ended; nil for the database's or, if it has none, this machine's.
  let clock: (@Sendable () -> Timestamp)?

  /// Creates a holder. `name` names the node; by default, that is the name of the machine. `now` is a clock for tests.
  package init(
    name: String? = nil, terms: Terms? = nil, now: (@Sendable () -> Timestamp)? = nil
  ) {
    node = "\(name ?? Self.machine)/\(AttemptToken.newNonce())"
    (self.terms, clock) = (terms, now)
  }

  /// The name of the machine.
  package static let machine: String = {
    var name = [CChar](repeating: 0, count: 256)
    let isKnown = unsafe name.withUnsafeMutableBufferPointer { buffer in
      guard let start = buffer.baseAddress else { return false }
      return unsafe gethostname(start, buffer.count - 1) == 0
    }
    return isKnown ? String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self) : "localhost"
  }()
}

extension Timestamp {
  /// Returns the time that many seconds later, to the millisecond.
  package static func + (time: Timestamp, seconds: Double) -> Timestamp {
    Timestamp(milliseconds: time.milliseconds + Int64((seconds * 1000).rounded()))
  }
}
