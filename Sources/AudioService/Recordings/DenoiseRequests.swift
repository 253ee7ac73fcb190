import AudioIO
import Denoise
import HTTP
import Jobs
import Media
import Processing
import Storage
import Terms

/// `POST /v1/recordings/{id}/denoise`: a job that makes a new recording.
struct DenoiseRequests: Sendable {
  let context: Context

  /// The known members of the body.
  static let known: JSONMembers.Known = [
    "noise": ["start", "end", "quantile"], "method": [], "strength": [], "reduction": [], "sensitivity": [],
    "output": [], "link": [], "adapt": [], "format": [], "name": [], "callback_url": [],
  ]

  @Sendable func create(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    return try await context.idempotency.once(request, caller) { key in
      try await create(request, parameters, caller, key)
    }
  }

  /// Returns the recording to denoise, which `If-Match` refers to.
  private func judge(
    _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller
  ) async throws -> Recording {
    let source = try await context.recording(parameters, caller)
    guard request.permitsChange(of: context.document(source)) else { throw StorageError.changedMeanwhile }
    return source
  }

  private func create(
    _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller, _ key: IdempotencyKey?
  ) async throws -> HTTPResponse {
    // Check everything that doesn't need the body before a client that waits for “100 Continue” sends it. But a
    // repeated key gets its first answer again, even if its recording is gone by now.
    let known = key?.kept == nil ? try await judge(request, parameters, caller) : nil
    let body = try await JSONMembers.bytes(of: request)
    let fingerprint = Self.fingerprint(body)
    if let answer = try key?.repeated(fingerprint) { return answer }
    let source: Recording
    if let known { source = known } else { source = try await judge(request, parameters, caller) }
    let members = try JSONMembers(body, known: Self.known)
    let asked = try Self.parameters(members)
    let nameAsked = try members.recordingName()
    let callback = try members.callbackURL(context.configuration.webhooks)
    _ = try await context.audioPath(of: source)
    guard let sourceFormat = source.audioFormat else { throw ServiceError.notReady(source.id) }
    try Self.check(asked.noise, fits: source.format, members)
    let target = try asked.format.format(for: sourceFormat)
    try await checkRoom(for: source)
    let client = caller.client
    let room = try context.runner.reserve(for: client)

    let job = Job(
      kind: .denoise, recording: source.id, output: RecordingID(), parameters: RowJSON.text(asked),
      result: nil, client: client.key)
    // A video, or another file that only ffmpeg reads, becomes the same file with different audio.
    let media = asked.format == .same ? source.mediaFacts?.ofResult : nil
    let ending = media?.fileExtension ?? target.fileExtension
    let name =
      nameAsked ?? RecordingName.derived(from: source.name, label: asked.settings.output.rawValue, extension: ending)
    let webhook = callback.map { Webhook(job: job.id, url: $0, traceparent: request.traceparent) }
    let (begun, document) = try await keep(
      job, caller, source: source, name: name, target: target, media: media, webhook: webhook
    ) {
      key?.answer(fingerprint, .accepted, location: "/v1/jobs/\(job.id)", $0)
    }
    if let webhook { context.webhooks.expect(webhook) }
    context.runner.submit(begun, source: source, room: room)
    return .changed(document, .accepted, location: "/v1/jobs/\(begun.id)")
  }

  private static func fingerprint(_ body: [UInt8]) -> String {
    var hash = SHA256()
    hash.update(body.span)
    return hash.hexDigest()
  }

  /// Assumes that the result is about as large as its source.
  private func checkRoom(for source: Recording) async throws {
    let store = context.store
    let free = try await context.work.run { () throws(StorageError) in try store.freeBytes() }
    guard source.bytes ?? 0 <= free - context.configuration.reservedDiskBytes else { throw ServiceError.diskFull }
  }

  /// Inserts the job and the recording it will make, which exists from now on and grows with the job. Returns the
  /// inserted job and its document; `answer` turns the document into the answer kept for repeated requests.
  private func keep(
    _ job: Job, _ caller: Caller, source: Recording, name: String, target: AudioFormat, media: MediaFacts?,
    webhook: Webhook?,
    answer: (JSONDocument) -> KeptAnswer?
  ) async throws -> (Job, JSONDocument) {
    guard let output = job.output else { preconditionFailure("a denoise job makes a recording") }
    var job = job
    job.result = RowJSON.text(JobResult(recording: output))
    let made = Recording(
      id: output, name: name,
      format: SoundShape(
        container: media?.container.rawValue ?? target.container.rawValue, codec: media?.codec ?? target.codec.name,
        sampleRate: target.sampleRate,
        channels: target.channels, frames: source.format.frames, estimatedFrames: source.format.estimatedFrames,
        duration: source.format.duration),
      waveformJob: job.id, media: media?.json,
      derivedFrom: Derivation(recording: source.id, job: job.id, operation: "denoise"))
    let (catalog, begun, stored) = (caller.catalog, job, context.accounts.stored(by: caller.tenant))
    let document = try JSONDocument(JobDocument(begun, live: nil, base: context.configuration.basePath))
    let kept = answer(document)
    try await context.work.run { () throws(StorageError) in
      try catalog.insert(
        made, jobs: [begun], webhooks: webhook.map { [$0] } ?? [], answer: kept, within: stored)
    }
    return (begun, document)
  }

  static func parameters(_ members: JSONMembers) throws -> DenoiseParameters {
    let noise = try noise(members)
    let method: DenoiseMethod? = try members.choice("method")
    let strength: Strength? = try members.choice("strength")
    let reduction = try members.number("reduction", in: 0...60)
    guard strength == nil || reduction == nil else {
      throw members.invalid("reduction", .leftOutBeside("strength"))
    }
    let sensitivity = try members.number("sensitivity", in: 0.5...2)
    let adapt = try members.flag("adapt")
    let output: DenoiseSettings.Output? = try members.choice("output")
    let link: ChannelLink? = try members.choice("link")
    let format: OutputFormat? = try members.choice("format")
    return DenoiseParameters(
      noise: noise,
      settings: DenoiseSettings(
        method: method ?? .mmseLSA, reductionDB: reduction ?? (strength ?? .natural).reductionDB,
        sensitivity: sensitivity ?? 1, output: output ?? .denoised, link: link,
        adaptation: DenoiseParameters.adaptation(asked: adapt)), format: format ?? .same)
  }

  /// `"auto"`, `{"start":…,"end":…}` or `{"quantile":…}`.
  private static func noise(_ members: JSONMembers) throws -> NoiseSource? {
    guard let value = members.value("noise"), value != .string("auto") else { return nil }
    let region = try members.nested(value, as: "noise", expecting: .noise)
    let start = try region.number("start", in: 0...1e9)
    let end = try region.number("end", in: 0...1e9)
    let quantile = try region.number("quantile", in: 0.01...0.9)
    switch (start, end, quantile) {
    case (let start?, let end?, nil):
      guard start < end else { throw region.invalid("end", .afterStart(limit: nil)) }
      return .region(start: start, end: end)
    case (nil, nil, let quantile?): return .quantile(quantile)
    case (_, nil, _): throw region.invalid("end", .givenWith("start"))
    default: throw region.invalid("start", .startOfRegion)
    }
  }

  /// Checks what can be known before the job: that the region is within the recording and long enough to learn from.
  static func check(
    _ noise: NoiseSource?, fits format: SoundShape, _ members: JSONMembers
  ) throws {
    guard case .region(let start, let end) = noise else {
      let needed = QuantileProfileBuilder.minimumFrames(sampleRate: format.sampleRate)
      guard let frames = format.frames, frames < needed else { return }
      throw RequestError.recordingTooShort(frames: frames, NoiseNeeds(frames: needed, sampleRate: format.sampleRate))
    }
    let needed = NoiseProfile.minimumFrames(sampleRate: format.sampleRate)
    let rate = Double(format.sampleRate)
    if let duration = format.duration, !NoiseSource.isRegion(start: start, end: end, within: duration) {
      throw RequestError.noiseRegionOutside(start: start, end: end, duration: duration)
    }
    let frames = Int64((min(end, format.duration ?? end) * rate).rounded()) - Int64((start * rate).rounded())
    guard frames >= needed else {
      throw RequestError.noiseRegionTooShort(frames: frames, NoiseNeeds(frames: needed, sampleRate: format.sampleRate))
    }
  }
}

extension HTTPRequest {
  /// The request's `traceparent` (W3C Trace Context, version 00); nil if it has none that is valid.
  var traceparent: String? {
    guard let text = fields["traceparent"], text.utf8.count == 55 else { return nil }
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    let isHexadecimal = parts.allSatisfy { part in
      part.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }
    return parts.map(\.utf8.count) == [2, 32, 16, 2] && isHexadecimal ? text : nil
  }
}
