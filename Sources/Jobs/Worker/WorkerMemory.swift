import Synchronization
import Terms

/// The peak memory of the workers that this process has started, by the name of their work.
package enum WorkerMemory {
  private static let histograms = Mutex<[String: Histogram]>([:])

  /// Counts a worker that has ended. `name` is one of few.
  static func add(_ bytes: Double, of name: String) {
    let histogram = histograms.withLock { histograms in
      if let known = histograms[name] { return known }
      let new = Histogram.ofMemory()
      histograms[name] = new
      return new
    }
    histogram.add(bytes)
  }

  /// The lines of the metric `name` in Prometheus' text format, labeled with the kind of work.
  package static func lines(_ name: String) -> String {
    histograms.withLock { $0 }.sorted { $0.key < $1.key }
      .map { $0.value.lines(name, labels: "work=\"\($0.key)\"") }.joined()
  }
}
