import HTTP
import Jobs
import Storage
import Terms
import Workers

/// `GET …/spectrum`: the mean power spectrum of a time range, computed while the request waits.
struct Spectra: Sendable {
  let context: Context

  /// The longest time range, in seconds.
  private static let stretchLimit = 600.0

  @Sendable func read(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    let query = try QueryParameters(request, known: ["start", "end"])
    let (start, end) = (try query.number("start"), try query.number("end"))
    let source = try await context.recording(parameters, caller)
    guard let start, start >= 0 else { throw query.invalid("start", start, .secondsFromZero) }
    let rate = source.format.sampleRate
    guard let end, end > start, TimeWindow(start: start, end: end).lasts(atMost: Self.stretchLimit, rate) else {
      throw query.invalid("end", end, .afterStart(limit: Self.stretchLimit))
    }
    let sound = try await context.soundFile(of: source, for: caller.client)
    let frames = try TimeWindow(start: start, end: end).frames(of: source.format, parameter: "start")
    let window = TimeWindow(
      start: frames.startSeconds(sampleRate: rate), end: frames.endSeconds(sampleRate: rate))
    let report = try await context.report(of: .spectrum(window), on: sound, source, for: caller.client)
    guard case .measured(let spectrum) = report else { preconditionFailure("another work's result") }
    return HTTPResponse(
      Representation(
        body: .bytes(try JSONDocument.encoded(spectrum)), contentType: "application/json",
        etag: "\"s1-\(source.id)-\(frames.lowerBound)-\(frames.upperBound)\"", cacheControl: context.immutable),
      for: request)
  }
}

extension Context {
  /// Returns the result of a recording's reader that works while the request waits, for a minute at most, and only as
  /// long as it waits.
  @discardableResult
  func report(
    of work: WorkerRequest.Work, on sound: LocalFile, _ source: Recording, for client: Client
  ) async throws -> WorkerReport {
    defer { withExtendedLifetime(sound) {} }
    let settings = configuration.workerSettings
    let request = WorkerRequest(work, on: sound.path, fence: .reader(of: source, settings), settings)
    let call = ReaderCall()
    return try await withTaskCancellationHandler {
      try await previews.turn(of: client, countsAsJob: true) {
        try await samples.run(for: client, of: source.id, isUnderWay: true, countsAsJob: true) { [readers] in
          do throws(ReaderFailure) { return try readers.report(of: request, for: client, call) } catch {
            // Says what of the work is at fault, not of the recording.
            if case .refused(let failure) = error { throw ServiceError(failure) }
            throw ServiceError(error, of: source.id)
          }
        }
      }
    } onCancel: {
      call.cancel()
    }
  }
}

extension TimeWindow {
  /// Whether the window isn't longer than `seconds`.
  func lasts(atMost seconds: Double, _ sampleRate: Int) -> Bool {
    Double(frames(sampleRate: sampleRate).count) <= max((seconds * Double(sampleRate)).rounded(), 1)
  }

  /// Returns the frames, up to the recording's end. Throws if they begin there or later; `parameter` names the start in
  /// the request.
  @discardableResult
  func frames(of format: SoundShape, parameter: String) throws -> Range<Int64> {
    let frames = frames(sampleRate: format.sampleRate)
    guard let total = format.frames else { return frames }
    guard frames.lowerBound < total else {
      throw RequestError.windowOutside(start: start, duration: format.duration ?? 0, parameter: parameter)
    }
    return frames.clamped(to: 0..<total)
  }
}

extension QueryParameters {
  fileprivate func invalid(_ name: String, _ value: Double?, _ expected: Expectation) -> RequestError {
    value.map { invalid(name, "\($0)", expected) } ?? .missingParameter(name, expected)
  }
}
