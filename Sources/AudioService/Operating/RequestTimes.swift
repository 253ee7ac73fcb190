import HTTP
import Synchronization
import Terms

/// How long requests take, by route and class of status.
final class RequestTimes: Sendable {
  private struct Name: Hashable {
    let method, route: String
    let statusClass: Int

    /// Hashes no text, which would take longer than the rest of the lookup. Equal texts compare at once, because a
    /// route's are always the same object.
    func hash(into hasher: inout Hasher) { hasher.combine(route.utf8.count * 8 + statusClass) }
  }

  private let histograms = Mutex<[Name: Histogram]>([:])

  /// Counts a request. One that no route served counts as route “none”.
  func add(_ record: RequestRecord) {
    let route = record.notes?.route ?? ""
    // The methods and routes are known, so their number is bounded.
    let name = Name(
      method: record.method?.rawValue ?? "none", route: route.isEmpty ? "none" : route,
      statusClass: (record.status?.code ?? 0) / 100)
    let histogram = histograms.withLock { histograms in
      if let known = histograms[name] { return known }
      let new = Histogram.ofSeconds()
      histograms[name] = new
      return new
    }
    histogram.add(record.seconds)
  }

  /// The metrics. Class 0xx: the client left before the answer.
  var text: String {
    let name = "stillwave_http_request_duration_seconds"
    var text = "# HELP \(name) Time of requests by route and class of status.\n# TYPE \(name) histogram\n"
    let all = histograms.withLock { $0 }.sorted {
      ($0.key.route, $0.key.method, $0.key.statusClass) < ($1.key.route, $1.key.method, $1.key.statusClass)
    }
    for (key, histogram) in all {
      let labels = "method=\"\(key.method)\",route=\"\(key.route)\",class=\"\(key.statusClass)xx\""
      text += histogram.lines(name, labels: labels)
    }
    return text
  }
}
