import Storage
import Synchronization
import Terms

/// What was asked of a store and of the cache of it, for metrics. Thread-safe; adding to it costs no call.
package final class S3Figures: Sendable {
  /// What a request does.
  enum Operation: String, CaseIterable { case get, head, put, delete, list, copy, multipart }

  /// How a request ended.
  enum Outcome: String, CaseIterable {
    case ok
    /// There is no such object or upload.
    case missing
    /// The store won't do it, for example because the key may not or the bucket is full.
    case refused
    /// No answer, a broken one, or that it can't do it now.
    case failed
    /// This machine couldn't read what was to be sent, or write what arrived, so the store may be well.
    case local
  }

  private struct Counts {
    var requests: [Operation: [Outcome: Int]] = [:]
    var spared = 0
    var sentBytes: Int64 = 0
    var receivedBytes: Int64 = 0
    var hitBytes: Int64 = 0
    var missBytes: Int64 = 0
    var redirects = 0
  }

  private let counts = Mutex(Counts())
  private let seconds: [(operation: Operation, histogram: Histogram)] = Operation.allCases.map { ($0, .ofSeconds()) }

  /// Creates figures of nothing.
  package init() {}

  /// Counts an attempt at a request: how it ended, the seconds that it took, and the bytes of its content and of the
  /// answer's.
  func add(
    _ request: S3Request, _ outcome: Outcome, seconds taken: Double, sent: Int64, received: Int64
  ) {
    let operation = Operation(request)
    counts.withLock { counts in
      counts.requests[operation, default: [:]][outcome, default: 0] += 1
      counts.sentBytes += sent
      counts.receivedBytes += received
    }
    seconds.first { $0.operation == operation }?.histogram.add(taken)
  }

  /// Counts a request that wasn't sent, because the store has just failed.
  func addSpared() { counts.withLock { $0.spared += 1 } }

  /// Counts bytes that were wanted of the cache: those that it had, and those that it fetched.
  func addRead(hit: Int64, miss: Int64) {
    counts.withLock { counts in
      counts.hitBytes += hit
      counts.missBytes += miss
    }
  }

  /// Counts a client that was sent to the store.
  func addRedirect() { counts.withLock { $0.redirects += 1 } }

  /// What the figures can't know of the store and the cache.
  package struct State: Sendable {
    var isFailing = false
    var isFull = false
    var cacheBytes: Int64 = 0
    var cacheLimitBytes: Int64 = 0

    /// Creates the state of a store that works, without a cache.
    package init() {}
  }

  /// All figures in Prometheus' text format (version 0.0.4).
  package func text(_ state: State) -> String {
    let counts = counts.withLock { $0 }
    var text = ""
    func metric(_ name: String, _ kind: String, _ help: String, _ lines: String) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n\(lines)"
    }
    func number(_ name: String, _ kind: String, _ help: String, _ value: some BinaryInteger) {
      metric(name, kind, help, "\(name) \(value)\n")
    }
    var requests = ""
    for operation in Operation.allCases {
      for outcome in Outcome.allCases {
        let labels = "operation=\"\(operation.rawValue)\",outcome=\"\(outcome.rawValue)\""
        requests += "stillwave_store_requests_total{\(labels)} \(counts.requests[operation]?[outcome] ?? 0)\n"
      }
    }
    metric("stillwave_store_requests_total", "counter", "Requests to the bucket's store.", requests)
    metric(
      "stillwave_store_request_seconds", "histogram", "Time of requests to the store.",
      seconds.map { $1.lines("stillwave_store_request_seconds", labels: "operation=\"\($0.rawValue)\"") }.joined())
    number(
      "stillwave_store_spared_requests_total", "counter", "Requests not sent, because the store had just failed.",
      counts.spared)
    number("stillwave_store_sent_bytes_total", "counter", "Bytes put into the store.", counts.sentBytes)
    number("stillwave_store_received_bytes_total", "counter", "Bytes fetched from the store.", counts.receivedBytes)
    number("stillwave_store_redirects_total", "counter", "Clients that were sent to the store.", counts.redirects)
    number("stillwave_store_failing", "gauge", "1 if the last request to the store failed.", state.isFailing ? 1 : 0)
    number("stillwave_store_full", "gauge", "1 if the bucket was full at the last put.", state.isFull ? 1 : 0)
    number("stillwave_cache_bytes", "gauge", "Disk space of the cache of the bucket.", state.cacheBytes)
    number("stillwave_cache_limit_bytes", "gauge", "Maximum of stillwave_cache_bytes.", state.cacheLimitBytes)
    number("stillwave_cache_hit_bytes_total", "counter", "Bytes wanted that the cache had.", counts.hitBytes)
    number("stillwave_cache_miss_bytes_total", "counter", "Bytes that the cache fetched.", counts.missBytes)
    return text
  }
}

extension S3Figures.Operation {
  init(_ request: S3Request) {
    self =
      switch request.method {
      case .get: request.query.contains { $0.name == "list-type" } ? .list : .get
      case .head: .head
      case .put: request.fields.contains { $0.name == "x-amz-copy-source" } ? .copy : .put
      case .post: .multipart
      case .delete: .delete
      }
  }
}

extension S3Figures.Outcome {
  init(_ error: S3Error?) {
    self =
      switch error {
      case nil: .ok
      case .noSuchKey, .noSuchUpload: .missing
      case let error? where error.isTransient: .failed
      case .malformedAnswer: .failed
      case .file, .libraryMissing: .local
      default: .refused
      }
  }
}

extension S3Media {
  /// The figures of the store and the cache in Prometheus' text format.
  package var metricsText: String {
    var state = S3Figures.State()
    (state.isFailing, state.isFull) = (store.client.isFailing, store.client.isFull)
    (state.cacheBytes, state.cacheLimitBytes) = (cache.cost, cache.limitBytes)
    return store.client.figures.text(state)
  }
}
