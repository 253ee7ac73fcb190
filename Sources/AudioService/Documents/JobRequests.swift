import HTTP
import Jobs
import Storage

/// Reading, listing, and canceling jobs.
struct JobRequests: Sendable {
  let context: Context

  @Sendable func list(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    let query = try QueryParameters(request, known: ["state", "recording", "limit", "cursor"])
    let limit = try query.integer("limit", in: 1...1000) ?? 50
    let state: JobState? = try query.choice("state")
    let recording = query.string("recording")
    let cursor = query.string("cursor")
    let source = try recording.map { text in
      guard let id = RecordingID(text) else { throw query.invalid("recording", text, .recordingID) }
      return id
    }
    let before = try cursor.map { text in
      guard let id = JobID(text) else { throw query.invalid("cursor", text, .cursor) }
      return id
    }
    let context = context
    let (document, next) = try await context.work.run {
      // Read one more than requested to detect another page.
      let found = try caller.catalog.jobs(state: state, recording: source, limit: limit + 1, before: before)
      let page = found.prefix(limit)
      let next = found.count > limit ? page.last?.id.text : nil
      return (try JSONDocument(JobList(jobs: page.map(context.document), nextCursor: next)), next)
    }
    return .page(document, next: next, for: request)
  }

  @Sendable func read(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) throws -> HTTPAnswer {
    let query = try QueryParameters(request, known: ["wait"])
    let wait = try query.integer("wait", in: 0...60) ?? 0
    let text = parameters["id"]
    guard let id = JobID(text) else { throw ServiceError.noSuchJob(text) }
    if wait == 0, let known = context.documents.known(id, of: caller.tenant) {
      return .now(.changing(known, for: request))
    }
    return .later { [context] in
      // Before the wait, whose length would show that another tenant's job exists.
      if wait > 0, try await context.documents.job(id, of: caller.tenant) == nil {
        throw ServiceError.noSuchJob(text)
      }
      if wait > 0 { await context.runner.waitForChange(of: id, seconds: Double(wait)) }
      guard let document = try await context.documents.job(id, of: caller.tenant) else {
        throw ServiceError.noSuchJob(text)
      }
      return .changing(document, for: request)
    }
  }

  /// The row becomes `cancelled` first; the child is killed and its files are removed right after.
  @Sendable func cancel(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let job = try await context.job(parameters, caller)
    guard !job.state.isFinished else { throw ServiceError.jobIsFinished(job.id, job.state) }
    let (context, catalog, reached) = (context, caller.catalog, context.runner.live[job.id]?.fraction ?? 0)
    let ended = try await context.work.run { () throws(StorageError) -> [Job]? in
      try context.blobs.makingRoom { () throws(StorageError) in
        try catalog.cancel(job.id, if: { request.permitsChange(of: context.document($0)) }, progress: reached)
      }
    }
    guard let ended, let now = ended.first else { throw ServiceError.noSuchJob(job.id.text) }
    guard now.state == .cancelled else { throw ServiceError.jobIsFinished(now.id, now.state) }
    context.runner.cancel(ended)
    context.jobMeter.job(now)
    return .changed(try JSONDocument(context.document(now)), .accepted, location: "/v1/jobs/\(job.id)")
  }
}
