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
    "output": [], "link": [], "adapt": [], "format": [], "loudness": [], "name": [], "callback_url": [],
  ]

  @Sendable func create(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try await DerivedRecordings(context: context).create(request, parameters, caller, known: Self.known) {
      try Self.plan($0, $1)
    }
  }

  private static func plan(_ members: JSONMembers, _ source: Recording) throws -> DerivedRecordings.Plan {
    let asked = try parameters(members)
    guard let format = source.audioFormat else { throw ServiceError.notReady(source.id) }
    try check(asked.noise, fits: source.format, members)
    return DerivedRecordings.Plan(
      kind: .denoise, parameters: RowJSON.text(asked), operation: "denoise",
      target: try asked.format.format(for: format),
      // A video, or another file that only ffmpeg reads, becomes the same file with different audio.
      media: asked.format == .same ? source.mediaFacts?.ofResult : nil, label: asked.settings.output.rawValue,
      length: source.format, extraBytes: asked.loudness == nil ? 0 : floatBytes(of: source.format))
  }

  /// The size of the file of floats that a change of loudness needs meanwhile.
  private static func floatBytes(of format: SoundShape) -> Int64 {
    let frames = Double(format.frames ?? format.estimatedFrames ?? 0)
    return Int64(min(4 * frames * Double(format.channels), 0x1p60))
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
    let loudness = try members.number("loudness", in: DenoiseParameters.loudnessRange)
    return DenoiseParameters(
      noise: noise,
      settings: DenoiseSettings(
        method: method ?? .mmseLSA, reductionDB: reduction ?? (strength ?? .natural).reductionDB,
        sensitivity: sensitivity ?? 1, output: output ?? .denoised, link: link,
        adaptation: DenoiseParameters.adaptation(asked: adapt)), format: format ?? .same, loudness: loudness)
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
