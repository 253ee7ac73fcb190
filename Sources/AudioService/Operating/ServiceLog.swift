import HTTP
import Jobs
import Logging
import Storage
import Webhooks
import Workers

/// Logs one structured line per request and per job.
struct ServiceLog: JobLog, WebhookLog {
  private let logger: Logger

  init(_ logger: Logger) { self.logger = logger }

  /// Whether requests are logged. If false, request lines aren't built.
  var tellsRequests: Bool { logger.logLevel <= .info }

  @Sendable func request(_ record: RequestRecord) {
    logger.info("request", metadata: Self.metadata(of: record))
  }

  /// The members of a request's line. `RequestLine` writes the same ones.
  static func metadata(of record: RequestRecord) -> Logger.Metadata {
    let notes = record.notes
    return [
      "key": "\(notes?.key ?? "")", "tenant": "\(notes?.tenant ?? "")",
      "method": "\(record.method?.rawValue ?? "")", "path": "\(record.path ?? "")",
      "status": .number(record.status?.code ?? 0), "bytes_in": .number(record.bytesReceived),
      "bytes_out": .number(record.bytesSent), "ms": .number(milliseconds(record.seconds)), "peer": "\(record.peer)",
      "request_id": "\(record.requestID)",
      "traceparent": "\(record.traceparent ?? "")",
    ]
  }

  func job(_ job: Job) {
    let started = job.startedAt ?? job.createdAt
    logger.info(
      "job",
      metadata: [
        "job": "\(job.id)", "kind": "\(job.kind.rawValue)", "recording": "\(job.recording)",
        "state": "\(job.state.rawValue)", "attempts": .number(job.attempts),
        "ms": .number((job.finishedAt ?? started).milliseconds - started.milliseconds),
      ])
  }

  /// Logs a 5xx response as a failure, unless the handler threw a `RequestError` or a `Problem`: then it's intended.
  func answered(_ request: HTTPRequest, with problem: Problem, for error: any Error) {
    guard problem.status.code >= 500, !(error is Problem || error is RequestError) else { return }
    failure("a request failed", ["request_id": request.id, "code": problem.code, "error": logText(error)])
  }

  /// Logs why an answer's content broke off, unless the service is ending.
  func brokeOff(_ request: HTTPRequest, for error: any Error) {
    guard !(error is CancellationError) else { return }
    failure("an answer broke off", ["request_id": request.id, "path": request.target.path], error)
  }

  /// Logs a write that keeps others waiting.
  @Sendable func writeHeld(_ write: HeldWrite) {
    failure(
      write.isUnderWay ? "a write holds the catalog" : "a write held the catalog",
      ["kind": write.kind, "statement": write.statement, "seconds": Words.seconds(write.seconds)])
  }

  func notice(_ message: String, _ metadata: [String: String] = [:]) {
    logger.notice("\(message)", metadata: metadata.mapValues { "\($0)" })
  }

  func failure(_ message: String, _ metadata: [String: String] = [:]) {
    logger.error("\(message)", metadata: metadata.mapValues { "\($0)" })
  }

  func failure(_ message: String, _ metadata: [String: String], _ error: any Error) {
    failure(message, metadata.merging(["error": logText(error)]) { $1 })
  }

  /// Rounded to the microsecond.
  private static func milliseconds(_ seconds: Double) -> Double { (seconds * 1e6).rounded() / 1e3 }
}

extension Logger.MetadataValue {
  /// A number that stays a number in the line.
  fileprivate static func number(_ value: some LosslessStringConvertible & Numeric & Sendable) -> Self {
    .stringConvertible(value)
  }
}
