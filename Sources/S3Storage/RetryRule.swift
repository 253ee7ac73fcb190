import Terms

/// Which failed requests are sent again.
enum RetryRule: Sendable {
  /// Sending it twice has the same effect as sending it once.
  case always
  /// Sending it twice would leave something behind: only if the first certainly had no effect.
  case ifNothingHappened

  /// Whether to send a request again after this error.
  func permits(_ error: S3Error, wasSent: Bool) -> Bool {
    guard error.isTransient else { return false }
    switch self {
    case .always: return true
    case .ifNothingHappened:
      // 503 comes before the request is carried out; an internal error may come in the middle of it.
      if case .unavailable(503, _) = error { return true }
      return !wasSent
    }
  }
}

/// Limits of a client.
package struct S3Settings: Sendable {
  /// Time to connect, in seconds.
  package var connectSeconds = 5.0
  /// How long a connection is kept that no request uses, in whole seconds: stores close theirs, some after 20 s, and
  /// over TLS that may go unnoticed until a request is lost.
  package var idleSeconds = 15
  /// Time that a request may take beside the transfer of its content, in seconds.
  package var requestSeconds = 20.0
  /// The slowest transfer that is waited for, in bytes per second.
  package var leastBytesPerSecond = 256.0 * 1024
  /// How long a call may take beside the transfer of its content, with all attempts, in seconds.
  package var totalSeconds = 30.0
  /// How long after a call has failed others fail at once, in seconds; then one may try whether the store works again.
  package var breakSeconds = 1.0
  /// How often a request is sent, at most.
  package var attempts = 5
  /// The wait before the second attempt, in seconds; it doubles with each further one, up to 5 s. A random part of up
  /// to a half is taken off, so that clients that failed together don't come back together.
  package var pauseSeconds = 0.2
  /// A PEM file with the authorities that may sign the store's certificate; by default the system's.
  package var authorities: String?

  /// What calls wait and time out by.
  package var clock = Clock.system

  /// All defaults.
  package init() {}

  /// The time that one attempt may take, in seconds, if the call has taken `elapsed` seconds beside the transfer.
  func deadlineSeconds(bytes: Int64, after elapsed: Double = 0) -> Double {
    min(requestSeconds, max(totalSeconds - elapsed, 0)) + Double(bytes) / leastBytesPerSecond
  }

  /// The extra time, in seconds, that a store gets to copy or join this many bytes: at most two minutes, because it may
  /// have vanished without closing the connection.
  static func secondsInStore(bytes: Int64) -> Double { min(Double(bytes) / 20e6, 120) }

  /// How much of the time that an attempt has taken wasn't spent on moving `bytes` bytes of content, in seconds.
  func secondsBesideTransfer(of bytes: Int64, in seconds: Double) -> Double {
    max(0, seconds - Double(bytes) / leastBytesPerSecond)
  }

  /// Whether a call that has taken `elapsed` seconds beside the transfer has time for another attempt.
  func hasTime(after elapsed: Double) -> Bool { elapsed < totalSeconds }

  /// The wait after `failures` attempts, in seconds.
  func pause(after failures: Int, using generator: inout some RandomNumberGenerator) -> Double {
    Backoff(firstSeconds: pauseSeconds, limitSeconds: 5).seconds(after: failures, using: &generator)
  }
}
