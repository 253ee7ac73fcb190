import Synchronization

/// Counts durations by how long they are, for Prometheus. Adding one takes a few nanoseconds and no lock.
package final class DurationHistogram: Sendable {
  /// The upper bounds of the buckets, in seconds; the last bucket has none.
  package static let bounds = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600]

  private final class Bucket: Sendable {
    let count = Atomic<Int>(0)
  }

  private let buckets = (0...DurationHistogram.bounds.count).map { _ in Bucket() }
  private let microseconds = Atomic<Int>(0)

  /// Creates an empty histogram.
  package init() {}

  /// Adds a duration in seconds; a negative one counts as 0.
  package func add(_ seconds: Double) {
    let index = Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count
    buckets[index].count.wrappingAdd(1, ordering: .relaxed)
    microseconds.wrappingAdd(Int(min(max(seconds, 0), 1e9) * 1e6), ordering: .relaxed)
  }

  /// Runs `body` and adds the time that it took, also if it throws.
  package func time<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
    let start = ContinuousClock.now
    defer { add((ContinuousClock.now - start) / .seconds(1)) }
    return try body()
  }

  /// The lines of the metric `name` in Prometheus' text format, with these labels ("kind=\"x\"", or empty).
  package func lines(_ name: String, labels: String) -> String {
    let prefix = labels.isEmpty ? "" : labels + ","
    var (text, total) = ("", 0)
    for (bucket, bound) in zip(buckets, Self.bounds.map { "\($0)" } + ["+Inf"]) {
      total += bucket.count.load(ordering: .relaxed)
      text += "\(name)_bucket{\(prefix)le=\"\(bound)\"} \(total)\n"
    }
    let braces = labels.isEmpty ? "" : "{\(labels)}"
    text += "\(name)_sum\(braces) \(Double(microseconds.load(ordering: .relaxed)) / 1e6)\n"
    return text + "\(name)_count\(braces) \(total)\n"
  }
}
