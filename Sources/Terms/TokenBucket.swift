/// A bucket of tokens that is filled at a steady rate, for a limit on how often something happens.
package struct TokenBucket: Sendable {
  /// The tokens that are left; negative if more were taken.
  package var left: Double
  private var at: Double

  /// Creates a bucket at a time in seconds.
  package init(_ tokens: Double, at now: Double) { (left, at) = (tokens, now) }

  /// Returns the tokens that are left at a later time.
  package func left(at now: Double, capacity: Double, perSecond rate: Double) -> Double {
    min(capacity, left + max(0, now - at) * rate)
  }

  /// Adds the tokens that have come until `now`, up to `capacity`.
  package mutating func fill(until now: Double, capacity: Double, perSecond rate: Double) {
    (left, at) = (left(at: now, capacity: capacity, perSecond: rate), max(now, at))
  }
}
