/// Waits that double from one failure to the next, up to a limit, each shortened by a random part, so that those who
/// failed together don't try again together.
package struct Backoff: Sendable {
  private let first, limit, randomPart: Double
  private var failures = 0

  /// `randomPart`: the share of a wait that is taken off at most.
  package init(firstSeconds: Double, limitSeconds: Double, randomPart: Double = 0.5) {
    (first, limit, self.randomPart) = (firstSeconds, limitSeconds, randomPart)
  }

  /// Returns the next wait in seconds.
  package mutating func seconds() -> Double {
    var generator = SystemRandomNumberGenerator()
    return seconds(using: &generator)
  }

  /// Returns the next wait in seconds.
  package mutating func seconds(using generator: inout some RandomNumberGenerator) -> Double {
    failures += 1
    return seconds(after: failures, using: &generator)
  }

  /// Returns how many seconds to wait after `failures` failures in a row, at least one.
  package func seconds(after failures: Int, using generator: inout some RandomNumberGenerator) -> Double {
    let longest = min(limit, first * Double(1 << min(max(failures - 1, 0), 30)))
    return longest * Double.random(in: (1 - randomPart)...1, using: &generator)
  }
}
