import Foundation

/// The source of random choices in tests where any choice must do: the same in every run with the same seed.
///
/// A seed that made a test fail makes it fail again: `STILLWAVE_TEST_SEED=7 deploy/test --filter …`. `deploy/test` uses
/// a different one each time and prints it at the end.
public enum TestSeed {
  /// `STILLWAVE_TEST_SEED`, by default 1.
  public static let value: UInt64 =
    ProcessInfo.processInfo.environment["STILLWAVE_TEST_SEED"].flatMap { UInt64($0) } ?? 1

  /// Returns a seed for one of several uses, which should not all see the same numbers.
  public static func of(_ use: some BinaryInteger) -> UInt64 {
    var generator = TestRandom(state: value)
    return generator.next() &+ UInt64(truncatingIfNeeded: use)
  }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
public struct TestRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Creates a generator in the given state.
  public init(state: UInt64) { self.state = state }

  /// Creates a generator with the run's seed for one of several uses.
  public init(for use: some BinaryInteger) { self.init(state: TestSeed.of(use)) }

  /// Returns the next number, any of 2^64.
  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
