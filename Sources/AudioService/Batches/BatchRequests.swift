import HTTP
import Jobs
import Storage
import Terms

/// `/v1/batches`: the same work on many recordings.
struct BatchRequests: Sendable {
  let context: Context

  /// Maximum number of a batch's recordings, and of the bytes of a request for one.
  private static let (recordingLimit, byteLimit) = (10_000, 1 << 20)

  private static let known: JSONMembers.Known = [
    "recordings": [], "callback_url": [], "denoise": [], "trim": [], "convert": [], "loudness": [],
  ]

  @Sendable func create(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    return try await context.idempotency.once(request, caller) { key in
      let client = caller.client
      return try await context.longBodies.intake(request, for: client, name: "waiting_batches") {
        let body = try await JSONMembers.bytes(of: request, upTo: Self.byteLimit)
        return try await create(body, request, caller, key)
      }
    }
  }

  private func create(
    _ body: [UInt8], _ request: HTTPRequest, _ caller: Caller, _ key: IdempotencyKey?
  ) async throws -> HTTPResponse {
    let fingerprint = DerivedRecordings.fingerprint(body)
    if let answer = try key?.repeated(fingerprint) { return answer }
    let (context, catalog, client) = (context, caller.catalog, caller.client)
    let traceparent = request.traceparent
    let (operation, recordings, callback) = try await context.work.run {
      let members = try JSONMembers(body, known: Self.known)
      return (
        try BatchOperation(members), try Self.recordings(members, at: catalog.time),
        try members.callbackURL(context.configuration.webhooks)
      )
    }
    if case .denoise(let asked) = operation {
      _ = try await context.noiseProfile(of: context.usable(asked).noise, named: "denoise.noise.profile", caller)
    }
    let (document, batch, webhook) = try await context.work.run {
      let (kind, parameters) = operation.stored
      let batch = Batch(
        of: catalog.tenant, client: client.key, kind: kind, parameters: parameters, total: recordings.count,
        at: catalog.time)
      let webhook = callback.map {
        Webhook(job: JobID(batch.id), url: $0, notBefore: batch.createdAt, traceparent: traceparent)
      }
      let document = try JSONDocument(BatchDocument(batch, live: nil))
      let answer = key?.answer(fingerprint, .accepted, location: Self.path(batch.id), document, at: batch.createdAt)
      try catalog.insert(batch, of: recordings, webhook: webhook, answer: answer)
      return (document, batch, webhook)
    }
    if let webhook { context.webhooks.expect(webhook) }
    context.batches.begin()
    return .changed(document, .accepted, location: Self.path(batch.id))
  }

  private static func path(_ id: BatchID) -> String { "/v1/batches/\(id)" }

  /// Returns the recordings. A text that can't be an ID stands for one that is missing, so it gets an ID of none.
  private static func recordings(_ members: JSONMembers, at time: Timestamp) throws -> [RecordingID] {
    let expected = Expectation.recordingIDs(limit: recordingLimit)
    guard case .array(let elements) = members.value("recordings"), (1...recordingLimit).contains(elements.count) else {
      throw members.invalid("recordings", expected)
    }
    return try elements.map { element in
      guard case .string(let text) = element else { throw members.invalid("recordings", expected) }
      return RecordingID(text) ?? RecordingID(at: time)
    }
  }

  @Sendable func list(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    let query = try QueryParameters(request, known: ["limit", "cursor"])
    let limit = try query.integer("limit", in: 1...1000) ?? 50
    let before = try query.string("cursor").map { text in
      guard let id = BatchID(text) else { throw query.invalid("cursor", text, .cursor) }
      return id
    }
    let (catalog, live) = (caller.catalog, context.runner.live)
    let (document, next) = try await context.work.run {
      let found = try catalog.batches(limit: limit + 1, before: before)
      let page = found.prefix(limit)
      let next = found.count > limit ? page.last?.id.text : nil
      let batches = try page.map { BatchDocument($0, live: try catalog.progress(of: $0, live)) }
      return (try JSONDocument(BatchList(batches: batches, nextCursor: next)), next)
    }
    return .page(document, next: next, for: request)
  }

  @Sendable func read(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    let wait = try QueryParameters(request, known: ["wait"]).integer("wait", in: 0...60) ?? 0
    let clock = context.clock
    let deadline = clock.instant(after: Double(wait))
    var place = context.changes.now(of: caller.tenant)
    let first = try await snapshot(parameters, caller)
    var now = first
    while !now.hasEnded, !now.isNews(after: first), !context.changes.waitsHaveEnded, !Task.isCancelled {
      let left = -clock.seconds(since: deadline)
      guard left > 0 else { break }
      await context.changes.wait(of: caller.tenant, since: place, seconds: left)
      place = context.changes.now(of: caller.tenant)
      now = try await snapshot(parameters, caller)
    }
    return .changing(now.document, for: request)
  }

  @Sendable func jobs(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    let query = try QueryParameters(request, known: ["limit", "cursor"])
    let limit = try query.integer("limit", in: 1...1000) ?? 50
    let before = try query.string("cursor").map { text in
      guard let id = JobID(text) else { throw query.invalid("cursor", text, .cursor) }
      return id
    }
    let (context, catalog, id) = (context, caller.catalog, try Self.id(parameters))
    let (document, next) = try await context.work.run {
      guard try catalog.batch(id) != nil else { throw ServiceError.noSuchBatch(id.text) }
      let found = try catalog.jobs(of: id, limit: limit + 1, before: before)
      let page = found.prefix(limit)
      let next = found.count > limit ? page.last?.id.text : nil
      return (try JSONDocument(JobList(jobs: page.map(context.document), nextCursor: next)), next)
    }
    return .page(document, next: next, for: request)
  }

  /// The rows are canceled first; then the children of its running jobs are killed and their files removed.
  @Sendable func cancel(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let (context, catalog, id, live) = (context, caller.catalog, try Self.id(parameters), context.runner.live)
    let (cancelled, jobs) = try await context.work.run {
      guard let known = try catalog.batch(id) else { throw ServiceError.noSuchBatch(id.text) }
      guard known.finishedAt == nil else { throw ServiceError.batchHasEnded(id, known.state) }
      return try context.blobs.makingRoom { () throws(StorageError) in
        _ = try catalog.cancel(id) { batch in
          request.permitsChange(of: BatchDocument(batch, live: try? catalog.progress(of: batch, live)))
        }
        // None is added from now on.
        var jobs: [Job] = []
        for job in try catalog.jobs(of: id, unfinished: true, limit: 10_000) {
          jobs += try catalog.cancel(job.id, progress: live[job.id]?.fraction ?? 0) ?? []
        }
        return (try catalog.batch(id), jobs)
      }
    }
    context.runner.cancel(jobs)
    for job in jobs where job.batch == id { context.jobMeter.job(job) }
    context.changes.post(.batch(id), of: caller.tenant)
    context.batches.begin()
    guard let cancelled else { throw ServiceError.noSuchBatch(id.text) }
    return .changed(try JSONDocument(BatchDocument(cancelled, live: nil)), .accepted, location: Self.path(id))
  }

  /// `GET …/events`, as JobEvents describes them. An event's ID is the progress in thousandths, or `done`.
  @Sendable func events(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let now = try await snapshot(parameters, caller)
    let last = request.fields["Last-Event-ID"]
    if now.hasEnded, last == "done" { return HTTPResponse(.noContent, fields: ["Cache-Control": "no-store"]) }
    let room = try context.eventStream(of: caller)
    let events = BatchEvents(self, parameters, caller, last: last.flatMap { Int($0) }, room)
    return HTTPResponse(.ok, fields: JobEvents.fields, body: .stream(length: nil) { try await events.next() })
  }

  private static func id(_ parameters: PathParameters) throws -> BatchID {
    let text = parameters["id"]
    guard let id = BatchID(text) else { throw ServiceError.noSuchBatch(text) }
    return id
  }

  fileprivate func snapshot(_ parameters: PathParameters, _ caller: Caller) async throws -> BatchSnapshot {
    let (id, catalog, live) = (try Self.id(parameters), caller.catalog, context.runner.live)
    return try await context.work.run {
      guard let batch = try catalog.batch(id) else { throw ServiceError.noSuchBatch(id.text) }
      return try BatchSnapshot(batch, live: try catalog.progress(of: batch, live))
    }
  }
}

extension TenantCatalog {
  /// How far a batch's unfinished jobs are, as the sum of their fractions.
  fileprivate func progress(of batch: Batch, _ live: LiveJobs) throws(StorageError) -> Double? {
    guard batch.finishedAt == nil, batch.begun > batch.ended else { return nil }
    return try jobs(of: batch.id, unfinished: true, limit: 100).reduce(0) { $0 + (live[$1.id]?.fraction ?? 0) }
  }
}

/// One client's stream of a batch's events. An actor only to protect its variables.
private actor BatchEvents {
  private let requests: BatchRequests
  private let parameters: PathParameters
  private let caller: Caller
  private let room: TallyPlace
  private var last: Int?
  private var hasBegun = false
  private var hasEnded = false

  init(_ requests: BatchRequests, _ parameters: PathParameters, _ caller: Caller, last: Int?, _ room: TallyPlace) {
    (self.requests, self.parameters, self.caller, self.last, self.room) = (requests, parameters, caller, last, room)
  }

  /// Returns the next event, or a comment if there was none for some time. nil if the batch has ended, the service is
  /// stopping, or the client or its key is gone.
  func next() async throws -> [UInt8]? {
    let opening = hasBegun ? [] : Array("retry: 2000\n\n".utf8)
    hasBegun = true
    let (changes, clock) = (requests.context.changes, requests.context.clock)
    let deadline = clock.instant(after: requests.context.configuration.heartbeatSeconds)
    while !hasEnded, !Task.isCancelled, !changes.waitsHaveEnded, caller.isStillAdmitted {
      let place = changes.now(of: caller.tenant)
      let now = try await requests.snapshot(parameters, caller)
      if now.hasEnded || last.map({ now.position >= $0 + 10 }) ?? true {
        (last, hasEnded) = (now.position, now.hasEnded)
        let (name, id) = now.hasEnded ? ("done", "done") : ("progress", "\(now.position)")
        return opening + Array("event: \(name)\nid: \(id)\ndata: ".utf8) + now.document.bytes + Array("\n\n".utf8)
      }
      if !opening.isEmpty { return opening }
      let left = -clock.seconds(since: deadline)
      if left <= 0 { return Array(": \n\n".utf8) }
      await changes.wait(of: caller.tenant, since: place, seconds: left)
    }
    return nil
  }
}
