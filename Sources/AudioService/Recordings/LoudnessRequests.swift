import HTTP
import Jobs
import Storage
import Terms

/// `GET …/loudness`: the loudness of a recording, measured by a job on first use and kept in that job's row.
struct LoudnessRequests: Sendable {
  let context: Context

  @Sendable func read(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let recording = try await context.recording(parameters, caller)
    guard recording.audioKey != nil, let sha256 = recording.sha256 else { throw ServiceError.notReady(recording.id) }
    let loudness =
      if let known = try await known(recording.id, caller) { known } else { try await measured(recording, caller) }
    return HTTPResponse(
      Representation(
        body: .bytes(try JSONDocument.encoded(LoudnessDocument(loudness))), contentType: "application/json",
        etag: "\"l1-\(sha256)\"", cacheControl: context.immutable),
      for: request)
  }

  func known(_ id: RecordingID, _ caller: Caller) async throws -> MeasuredLoudness? {
    let catalog = caller.catalog
    let job = try await context.work.run { () throws(StorageError) in
      try catalog.latestJob(kind: .loudness, state: .succeeded, of: id)
    }
    return RowJSON.value(JobResult.self, from: job?.result)?.measured
  }

  private func measured(_ recording: Recording, _ caller: Caller) async throws -> MeasuredLoudness {
    try await context.checkAudio(of: recording)
    let job = try await context.succeeded(
      Job(kind: .loudness, recording: recording.id, createdAt: caller.catalog.time), of: recording,
      until: context.waitDeadline, for: caller, orStill: RequestError.measuring)
    if let measured = RowJSON.value(JobResult.self, from: job.result)?.measured { return measured }
    throw ServiceError.workerUnavailable(reason: "a loudness was not kept")
  }
}

/// A loudness in the API.
struct LoudnessDocument: Encodable, Sendable {
  @Nullable var integratedLufs: Double?
  @Nullable var rangeLu: Double?
  @Nullable var truePeakDbtp: Double?

  /// Rounds to hundredths, which is finer than any meter.
  init(_ loudness: MeasuredLoudness) {
    func rounded(_ value: Double?) -> Double? { value.map { ($0 * 100).rounded() / 100 + 0 } }
    integratedLufs = rounded(loudness.integratedLufs)
    rangeLu = rounded(loudness.rangeLu)
    truePeakDbtp = rounded(loudness.truePeakDbtp)
  }
}

/// The loudness before and after cleaning.
struct LoudnessChangeDocument: Encodable, Sendable {
  var target: Double
  var before, after: LoudnessDocument

  init(_ change: LoudnessChange) {
    target = change.target
    (before, after) = (LoudnessDocument(change.before), LoudnessDocument(change.after))
  }
}

/// The level of the noise before and after cleaning.
struct NoiseLevelsDocument: Encodable, Sendable {
  @Nullable var before: Double?
  @Nullable var after: Double?

  /// Rounds to hundredths of a decibel.
  init(_ levels: NoiseLevels) {
    func rounded(_ value: Double?) -> Double? { value.map { ($0 * 100).rounded() / 100 + 0 } }
    (before, after) = (rounded(levels.before), rounded(levels.after))
  }
}
