import HTTP
import Jobs
import Storage
import Terms
import Workers

/// Requests for jobs that make a new recording of an existing one: what they have in common.
struct DerivedRecordings: Sendable {
  let context: Context

  /// The job to queue, and the recording that it makes.
  struct Plan {
    var kind: JobKind
    /// The job's parameters, as stored in its row.
    var parameters: String
    /// What was done, as named in `derived_from`.
    var operation: String
    /// The result's format.
    var target: AudioFormat
    /// The facts about the result's file, if ffmpeg writes it.
    var media: MediaFacts?
    /// How the result's name differs from its source's, if the request gives none.
    var label: String
    /// The length of the result, as far as known.
    var length: SoundShape
    /// What part of its source the result is, 0 … 1.
    var share = 1.0
    /// Bytes that the job needs besides its result.
    var extraBytes: Int64 = 0

    /// Bytes that the result is expected to take: its file, its waveform and, if ffmpeg writes the file, which is then
    /// about as long as the source's, its working copy.
    func expectedBytes(from source: Recording) -> Int64 {
      guard let format = source.audioFormat else { return 0 }
      let frames = length.frames ?? length.estimatedFrames ?? 0
      return ExpectedBytes.sound(target, frames: frames, from: source.expectedSource(format, share: share))
        + ExpectedBytes.waveform(sampleRate: target.sampleRate, channels: target.channels, frames: frames)
        + (media == nil ? 0 : Int64((Double(source.bytes ?? 0) * share).rounded(.up)))
    }
  }

  /// Answers a request that has the members `name` and `callback_url` besides those that `plan` reads. The same request
  /// with the same `Idempotency-Key` gets its first answer again.
  func create(
    _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller, known: JSONMembers.Known,
    bodyLimit: Int = JSONMembers.byteLimit, plan: (JSONMembers, Recording) async throws -> Plan
  ) async throws -> HTTPResponse {
    try QueryParameters.checkNone(request)
    return try await context.idempotency.once(request, caller) { key in
      try await create(request, parameters, caller, key, known: known, bodyLimit: bodyLimit, plan: plan)
    }
  }

  /// Returns the source, which `If-Match` refers to.
  private func judge(
    _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller
  ) async throws -> Recording {
    let source = try await context.recording(parameters, caller)
    guard request.permitsChange(of: context.document(source)) else { throw StorageError.changedMeanwhile }
    return source
  }

  private func create(
    _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller, _ key: IdempotencyKey?,
    known: JSONMembers.Known, bodyLimit: Int,
    plan: (JSONMembers, Recording) async throws -> Plan
  ) async throws -> HTTPResponse {
    // Check everything that doesn't need the body before a client that waits for “100 Continue” sends it. But a
    // repeated key gets its first answer again, even if its recording is gone by now.
    let judged = key?.kept == nil ? try await judge(request, parameters, caller) : nil
    let body = try await JSONMembers.bytes(of: request, upTo: bodyLimit)
    let fingerprint = Self.fingerprint(body)
    if let answer = try key?.repeated(fingerprint) { return answer }
    let source: Recording
    if let judged { source = judged } else { source = try await judge(request, parameters, caller) }
    let members = try JSONMembers(body, known: known.merging(["name": [], "callback_url": []]) { $1 })
    let nameAsked = try members.recordingName()
    let callback = try members.callbackURL(context.configuration.webhooks)
    let planned = try await plan(members, source)
    let begun = try await begin(planned, of: source, named: nameAsked, caller) { job, document in
      let webhook = callback.map {
        Webhook(job: job.id, url: $0, notBefore: job.createdAt, traceparent: request.traceparent)
      }
      let answer = key?.answer(fingerprint, .accepted, location: "/v1/jobs/\(job.id)", document, at: job.createdAt)
      return (webhook, answer)
    }
    return .changed(begun.document, .accepted, location: "/v1/jobs/\(begun.job.id)")
  }

  /// Queues a job and inserts the recording that it makes, in one transaction with what `adding` returns. `batch`: the
  /// batch whose next recording `source` is; see `Catalog.insert`.
  func begin(
    _ planned: Plan, of source: Recording, named name: String?, _ caller: Caller, next batch: Batch? = nil,
    adding: (Job, JSONDocument) -> (webhook: Webhook?, answer: StoredResponse?) = { _, _ in (nil, nil) }
  ) async throws -> (job: Job, document: JSONDocument) {
    try await context.checkFinished(source)
    let bytes = planned.expectedBytes(from: source)
    try await context.checkUsage(of: caller, adding: bytes)
    try await context.admission.checkDisk(for: bytes + planned.extraBytes)
    let client = caller.client
    let room = try context.runner.reserve(for: client)
    let now = caller.catalog.time
    let output = RecordingID(at: now)
    let job = Job(
      kind: planned.kind, recording: source.id, output: output, createdAt: now, expectedBytes: bytes,
      parameters: planned.parameters, result: RowJSON.text(JobResult(recording: output)), client: client.key,
      batch: batch?.id)
    let ending = planned.media?.fileExtension ?? planned.target.fileExtension
    let name = name ?? RecordingName.derived(from: source.name, label: planned.label, extension: ending)
    let made = planned.recording(output, by: job, of: source, named: name)
    let document = try JSONDocument(JobDocument(job, live: nil, base: context.configuration.basePath))
    let (webhook, answer) = adding(job, document)
    let (catalog, stored) = (caller.catalog, context.accounts.stored(by: caller.tenant))
    try await context.work.run { () throws(StorageError) in
      try catalog.insert(
        made, jobs: [job], webhooks: webhook.map { [$0] } ?? [], answer: answer, within: stored, next: batch)
    }
    if let webhook { context.webhooks.expect(webhook) }
    context.runner.submit(job, source: source, room: room)
    return (job, document)
  }

  static func fingerprint(_ body: [UInt8]) -> String {
    var hash = SHA256()
    hash.update(body.span)
    return hash.hexDigest()
  }
}

extension DerivedRecordings.Plan {
  /// The recording that `job` makes, which exists from now on and grows with the job.
  fileprivate func recording(_ id: RecordingID, by job: Job, of source: Recording, named name: String) -> Recording {
    Recording(
      id: id, name: name, createdAt: job.createdAt,
      format: SoundShape(
        container: media?.container.rawValue ?? target.container.rawValue, codec: media?.codec ?? target.codec.name,
        sampleRate: target.sampleRate,
        channels: target.channels, frames: length.frames, estimatedFrames: length.estimatedFrames),
      waveformJob: job.id, media: media?.json,
      derivedFrom: Derivation(recording: source.id, job: job.id, operation: operation))
  }
}

extension Recording {
  /// What its sound is read from, for `ExpectedBytes`.
  func expectedSource(_ format: AudioFormat, share: Double = 1) -> ExpectedBytes.Source {
    ExpectedBytes.Source(format, bytes: (media == nil ? bytes : workingBytes) ?? 0, share: share)
  }
}
