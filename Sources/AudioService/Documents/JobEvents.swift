// Server-sent events (WHATWG HTML §9.2, text/event-stream):
//
//   retry: 2000            how long a disconnected client waits before reconnecting, in ms; sent once, first
//   (empty line)
//   event: progress        or done for the last event
//   id: 1-370              a JobStep; the client sends it back as Last-Event-ID
//   data: {"id":…}         the Job, on one line
//   (empty line)
//   : \n\n                 a comment, sent when idle, so that proxies keep the connection open
//
// Each event holds the whole Job, so a reconnecting client needs only the state it hasn't seen: steps only grow, and a
// step not beyond Last-Event-ID isn't sent. An EventSource also reconnects after the end of the stream; if it has seen
// `done`, it gets a 204, which tells it to stop.

import HTTP
import Jobs
import Storage

/// `GET /v1/jobs/{id}/events`: streams a job's progress. Waiting clients hold no thread, and one catalog read serves
/// them all.
struct JobEvents: Sendable {
  let context: Context

  static let fields: HTTPFields = [
    "Content-Type": "text/event-stream", "Cache-Control": "no-store",
    // Keeps nginx from buffering the response.
    "X-Accel-Buffering": "no",
  ]

  @Sendable func stream(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let text = parameters["id"]
    guard let id = JobID(text), let job = try await caller.snapshot(of: id) else {
      throw ServiceError.noSuchJob(text)
    }
    let last = request.fields["Last-Event-ID"].flatMap(JobStep.init)
    if job.step.isEnd, last?.isEnd == true {
      return HTTPResponse(.noContent, fields: ["Cache-Control": "no-store"])
    }
    // If the job is still running, the client can't have seen its end.
    let events = Subscription(context, caller, id, last: last?.isEnd == true ? nil : last)
    return HTTPResponse(.ok, fields: Self.fields, body: .stream(length: nil) { try await events.next() })
  }
}

/// One client's stream of a job's events. An actor only to protect its variables: its single caller requests one event
/// at a time.
private actor Subscription {
  private let context: Context
  private let caller: Caller
  private let id: JobID
  /// The last step sent to the client.
  private var last: JobStep?
  private var hasBegun = false

  private static let opening = Array("retry: 2000\n\n".utf8)
  private static let heartbeat = Array(": \n\n".utf8)

  init(_ context: Context, _ caller: Caller, _ id: JobID, last: JobStep?) {
    (self.context, self.caller, self.id, self.last) = (context, caller, id, last)
  }

  /// Returns the next event, or a comment if there was none for some time. nil if the job has ended, the service is
  /// stopping, the client is gone, or its key is.
  func next() async throws -> [UInt8]? {
    if last?.isEnd == true { return nil }
    let opening = hasBegun ? [] : Self.opening
    hasBegun = true
    let live = context.runner.live
    let clock = context.clock
    let deadline = clock.instant(after: context.configuration.heartbeatSeconds)
    while !Task.isCancelled {
      // Call `look` before reading the document, so that a later change ends the wait below.
      let look = live.look(at: id)
      guard caller.isStillAdmitted, let job = try await caller.snapshot(of: id) else { return nil }
      if last.map({ $0 < job.step }) ?? true {
        last = job.step
        return opening + Self.event(job)
      }
      if !opening.isEmpty { return opening }
      let left = -clock.seconds(since: deadline)
      if live.waitsHaveEnded { return nil }
      if left <= 0 { return Self.heartbeat }
      await live.waitForChange(of: id, since: look, seconds: left)
    }
    return nil
  }

  private static func event(_ job: JobSnapshot) -> [UInt8] {
    Array("event: \(job.step.isEnd ? "done" : "progress")\nid: \(job.step)\ndata: ".utf8) + job.document.bytes
      + Array("\n\n".utf8)
  }
}
