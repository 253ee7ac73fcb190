import HTTP
import Jobs
import Storage
import Terms
import Workers

/// `POST …/denoise/preview`: a time range of a recording, denoised while the request waits.
struct DenoisePreviews: Sendable {
  let context: Context

  /// The longest time range of a preview, in seconds.
  private static let windowLimit = 30.0

  private static let known = DenoiseRequests.known.merging(
    ["window": ["start", "end"], "as": []].merging(PreviewForm.known) { $1 }
  ) { $1 }

  @Sendable func create(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let source = try await context.recording(parameters, caller)
    let members = try await JSONMembers(bodyOf: request, upTo: DenoiseRequests.bodyLimit, known: Self.known)
    let window = try Self.window(members, sampleRate: source.format.sampleRate)
    let asked = try context.usable(DenoiseRequests.parameters(members))
    _ = try members.recordingName()
    _ = try members.callbackURL(context.configuration.webhooks)
    let client = caller.client
    let sound = try await context.soundFile(of: source, for: caller.client)
    try DenoiseRequests.check(asked, fits: source.format)
    let profile = try await context.noiseProfile(of: asked.noise, caller)
    let frames = try window.frames(of: source.format, parameter: "window.start")
    let form = try PreviewForm(members, request, frames, of: source)

    let (scratch, id) = (context.scratch, JobID(at: caller.catalog.time))
    let folder = try await context.work.run { () throws(StorageError) in try scratch.makeWorkFolder(of: id) }
    // The response's file stays open, and thus readable, after its folder is removed.
    defer { context.work.start { scratch.disk.removeWorkFolder(of: id) } }
    let output = folder + "/preview.\(form.format.rawValue)"
    var wanted = asked
    wanted.format = form.format
    // The gain depends on the whole cleaned sound, of which this is a part.
    let leftOut: HTTPFields = wanted.loudness == nil ? [:] : ["Stillwave-Left-Out": "loudness"]
    wanted.loudness = nil
    var work = DenoiseWork(
      wanted, output: output, window: form.window(sampleRate: source.format.sampleRate) ?? window,
      isDurable: false)
    work.noiseRegions = source.noiseRegions
    if let profile {
      let path = folder + "/profile.json"
      try await context.work.run { () throws(StorageError) in try scratch.disk.write(profile.spectrum, toWorkFile: path)
      }
      work.profilePath = path
    }
    let report = try await context.report(of: .denoise(work), on: sound, source, for: client)
    var response = HTTPResponse(
      .ok, fields: form.fields, body: try await body(form, of: output, source, for: client))
    response.fields["Cache-Control"] = "no-store"
    for (name, value) in leftOut { response.fields[name] = value }
    if case .denoised(let outcome) = report, let codes = Self.codes(outcome.warnings) {
      response.fields["Stillwave-Warnings"] = codes
    }
    return response
  }

  /// Returns the codes of the warnings that the job would have, or nil without any.
  private static func codes(_ warnings: [Warning]) -> String? {
    let codes = warnings.map(\.code).filter { Warning.isOfSound($0) || Warning.isOfResult($0) }
    return codes.isEmpty ? nil : codes.joined(separator: ", ")
  }

  /// Returns what a form shows of the preview's file, which a reader reads.
  private func body(
    _ form: PreviewForm, of path: String, _ source: Recording, for client: Client
  ) async throws -> ResponseBody {
    if form.frames == nil {
      return .file(try await context.work.run { () throws(FileContentError) in try FileContent(path: path) })
    }
    let bytes = try await context.samples.run(for: client, of: source.id, isUnderWay: true, countsAsJob: true) {
      [readers = context.readers] in
      try form.bytes { read in
        do throws(ReaderFailure) { return try readers.read(path, for: client, read) } catch {
          throw ServiceError(error, of: source.id)
        }
      }
    }
    return .bytes(bytes)
  }

  private static func window(_ members: JSONMembers, sampleRate: Int) throws -> TimeWindow {
    let expected = Expectation.window(limit: windowLimit)
    guard let value = members.value("window") else { throw members.invalid("window", expected) }
    let window = try members.nested(value, as: "window", expecting: expected)
    let (start, end) = (try window.number("start", in: 0...1e9), try window.number("end", in: 0...1e9))
    guard let start else { throw window.invalid("start", .given) }
    guard let end, end > start, TimeWindow(start: start, end: end).lasts(atMost: windowLimit, sampleRate) else {
      throw window.invalid("end", .afterStart(limit: windowLimit))
    }
    return TimeWindow(start: start, end: end)
  }
}
