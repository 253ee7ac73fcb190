import AudioIO
import HTTP
import Processing
import Storage

/// What is computed while the request waits: a window of a denoised recording, and the spectrum of a stretch.
struct Previews: Sendable {
  let context: Context

  /// Longest window of a preview, in seconds.
  private static let windowLimit = 30.0
  /// Longest stretch of a spectrum, in seconds.
  private static let stretchLimit = 600.0

  /// What a child may take for it.
  private static let timeoutSeconds = 60.0

  private static let known = DenoiseRequests.known.merging(["window": ["start", "end"]]) { $1 }

  /// `POST …/denoise/preview`.
  @Sendable func denoise(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try QueryParameters.checkNone(request)
    let source = try await context.recording(parameters)
    let members = try await JSONMembers(bodyOf: request, known: Self.known)
    let window = try Self.window(members)
    let asked = try DenoiseRequests.parameters(members)
    _ = try members.recordingName()
    _ = try members.callbackURL(context.configuration.webhooks)
    let client = context.client(of: request)
    let path = try await context.soundPath(of: source)
    try DenoiseRequests.check(asked.noise, fits: source.format, members)
    try Self.check(window, startsIn: source.format, parameter: "window.start")

    let (store, work) = (context.store, JobID())
    let folder = try await context.work.run { () throws(StorageError) in try store.makeWorkFolder(of: work) }
    // The answer's file stays open, and so readable, when its folder is gone.
    defer { context.work.start { store.removeWorkFolder(of: work) } }
    let output = folder + "/preview.wav"
    _ = try await context.previews.report(
      of: [
        "denoise", path, "-o", output, "--format", "wav", "--window", "\(window.start)-\(window.end)", "--work-folder",
        folder,
      ]
        + JobCommand.arguments(asked, source: source) + Self.workerArguments(context, source), for: client,
      timeoutSeconds: Self.timeoutSeconds)
    let content = try await context.work.run { () throws(FileContentError) in try FileContent(path: output) }
    return HTTPResponse(
      .ok, fields: ["Content-Type": "audio/wav", "Cache-Control": "no-store"], body: .file(content))
  }

  private struct Spectrum: Encodable {
    let frequencies, powerDb: [Double]
  }

  /// `GET …/spectrum`.
  @Sendable func spectrum(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    let query = try QueryParameters(request, known: ["start", "end"])
    let (start, end) = (try query.number("start"), try query.number("end"))
    let source = try await context.recording(parameters)
    guard let start, start >= 0 else { throw query.invalid("start", start, "a number of seconds, 0 or more") }
    guard let end, end > start, end - start <= Self.stretchLimit else {
      throw query.invalid("end", end, "after “start”, by \(Words.seconds(Self.stretchLimit)) s at the most")
    }
    let path = try await context.soundPath(of: source)
    try Self.check(TimeWindow(start: start, end: end), startsIn: source.format, parameter: "start")
    let last = min(end, source.format.duration ?? end)
    let report = try await context.previews.report(
      of: ["spectrum", path, "--window", "\(start)-\(last)"] + Self.workerArguments(context, source),
      for: context.client(of: request), timeoutSeconds: Self.timeoutSeconds)
    guard let spectrum = report.spectrum else { throw ServiceError.workerUnavailable(reason: "no spectrum came") }
    let answer = Spectrum(frequencies: spectrum.frequencies, powerDb: spectrum.powerDB)
    return HTTPResponse(
      Representation(
        body: .bytes(try JSONDocument.encoded(answer)), contentType: "application/json",
        etag: "\"s1-\(source.id)-\(start)-\(last)\"", cacheControl: "private, max-age=31536000, immutable"),
      for: request)
  }

  private static func workerArguments(_ context: Context, _ source: Recording) -> [String] {
    ["--progress", "json", "--until-standard-input-closes"] + context.configuration.limitArguments
      + WorkerFence.preview(of: source, context.configuration).arguments
  }

  private static func window(_ members: JSONMembers) throws -> TimeWindow {
    let expected = "an object with start and end in seconds, \(Words.seconds(windowLimit)) s apart at the most"
    guard let value = members.value("window") else { throw members.invalid("window", expected) }
    let window = try members.nested(value, as: "window", expecting: expected)
    let (start, end) = (try window.number("start", in: 0...1e9), try window.number("end", in: 0...1e9))
    guard let start else { throw window.invalid("start", "given") }
    guard let end, end > start, end - start <= windowLimit else {
      throw window.invalid("end", "greater than start, by \(Words.seconds(windowLimit)) s at the most")
    }
    return TimeWindow(start: start, end: end)
  }

  private static func check(_ window: TimeWindow, startsIn format: RecordingFormat, parameter: String) throws {
    guard let duration = format.duration, window.start >= duration else { return }
    throw Problem(
      .unprocessableContent, code: "window_outside",
      detail:
        "The window begins at \(Words.seconds(window.start)) s; the recording lasts \(Words.seconds(duration)) s.",
      parameter: parameter)
  }
}

extension QueryParameters {
  fileprivate func invalid(_ name: String, _ value: Double?, _ expected: String) -> Problem {
    guard let value else {
      return Problem(
        .badRequest, code: "invalid_parameter", detail: "“\(name)” must be given: \(expected).", parameter: name)
    }
    return invalid(name, "\(value)", expected)
  }
}
