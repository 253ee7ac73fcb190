import Synchronization

/// Counts values by their size, for Prometheus. Adding one takes a few nanoseconds and no lock.
package final class Histogram: Sendable {
  private final class Bucket: Sendable {
    let count = Atomic<Int>(0)
  }

  private let bounds: [Double]
  private let buckets: [Bucket]
  /// The sum is kept in whole parts of a unit: this many make one.
  private let parts: Double
  private let sum = Atomic<Int>(0)

  private init(bounds: [Double], parts: Double) {
    (self.bounds, self.parts) = (bounds, parts)
    buckets = (0...bounds.count).map { _ in Bucket() }
  }

  /// Creates an empty histogram of durations in seconds, from a millisecond to ten minutes.
  package static func ofSeconds() -> Histogram {
    Histogram(bounds: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600], parts: 1e6)
  }

  /// Creates an empty histogram of memory in bytes, from 8 MiB to 4 GiB.
  package static func ofMemory() -> Histogram {
    Histogram(bounds: (0..<10).map { Double((8 << 20) << $0) }, parts: 0x1p-10)
  }

  /// Adds a value; a negative one counts as 0.
  package func add(_ value: Double) {
    let index = bounds.firstIndex { value <= $0 } ?? bounds.count
    buckets[index].count.wrappingAdd(1, ordering: .relaxed)
    sum.wrappingAdd(Int(min(max(value * parts, 0), 1e15)), ordering: .relaxed)
  }

  /// Adds the seconds since `start`.
  package func add(since start: Clock.Instant, by clock: Clock) { add(clock.seconds(since: start)) }

  /// Runs `body` and adds the seconds that it took, also if it throws.
  package func time<Value, Failure: Error>(
    by clock: Clock, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let start = clock.now
    defer { add(since: start, by: clock) }
    return try body()
  }

  /// The lines of the metric `name` in Prometheus' text format, with these labels ("kind=\"x\"", or empty).
  package func lines(_ name: String, labels: String) -> String {
    let prefix = labels.isEmpty ? "" : labels + ","
    var (text, total) = ("", 0)
    for (bucket, bound) in zip(buckets, bounds.map { "\($0)" } + ["+Inf"]) {
      total += bucket.count.load(ordering: .relaxed)
      text += "\(name)_bucket{\(prefix)le=\"\(bound)\"} \(total)\n"
    }
    let braces = labels.isEmpty ? "" : "{\(labels)}"
    text += "\(name)_sum\(braces) \(Double(sum.load(ordering: .relaxed)) / parts)\n"
    return text + "\(name)_count\(braces) \(total)\n"
  }
}
