import Denoise
import HTTP
import Jobs
import Storage
import Terms
import Workers

/// `POST /v1/recordings/{id}/denoise`: a job that makes a new recording.
struct DenoiseRequests: Sendable {
  let context: Context

  /// The known members of the body.
  static let known: JSONMembers.Known = [
    "noise": ["start", "end", "regions", "quantile", "profile"], "method": [], "strength": [], "reduction": [],
    "sensitivity": [], "output": [], "link": [], "adapt": [], "edit": ["boxes"], "format": [], "loudness": [],
    "name": [],
    "callback_url": [],
  ]

  /// Maximum size of a body, in bytes: that of 1,000 boxes with long numbers.
  static let bodyLimit = 1 << 18

  @Sendable func create(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try await DerivedRecordings(context: context).create(
      request, parameters, caller, known: Self.known, bodyLimit: Self.bodyLimit
    ) {
      try await plan(context.usable(Self.parameters($0)), $1, caller)
    }
  }

  func plan(
    _ asked: DenoiseParameters, _ source: Recording, _ caller: Caller
  ) async throws -> DerivedRecordings.Plan {
    guard let format = source.audioFormat else { throw ServiceError.notReady(source.id) }
    try Self.check(asked, fits: source.format)
    _ = try await context.noiseProfile(of: asked.noise, caller)
    return DerivedRecordings.Plan(
      kind: .denoise, parameters: RowJSON.text(asked), operation: "denoise",
      target: try asked.format.format(for: format),
      // A video, or another file that only ffmpeg reads, becomes the same file with different audio.
      media: asked.format == .same ? source.mediaFacts?.ofResult : nil, label: asked.settings.output.rawValue,
      length: source.format, extraBytes: asked.loudness == nil ? 0 : Self.floatBytes(of: source.format))
  }

  /// The size of the file of floats that a change of loudness needs meanwhile.
  private static func floatBytes(of format: SoundShape) -> Int64 {
    let frames = Double(format.frames ?? format.estimatedFrames ?? 0)
    return Int64(min(4 * frames * Double(format.channels), 0x1p60))
  }

  /// `GET /v1/methods`: those that can be used here.
  @Sendable func methods(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) throws -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let installed = DenoiseMethod.allCases.filter { $0 != .editOnly && ($0 != .voice || context.hasVoice) }
    return try .json(
      .ok, MethodList(methods: installed.map(\.rawValue)), fields: ["Cache-Control": "no-store"])
  }

  private struct MethodList: Encodable { let methods: [String] }

  static func parameters(_ members: JSONMembers) throws -> DenoiseParameters {
    let noise = try members.noiseSource(mayBeProfile: true)
    let method: DenoiseMethod? = try members.choice("method")
    let strength: Strength? = try members.choice("strength")
    let reduction = try members.number("reduction", in: 0...60)
    guard strength == nil || reduction == nil else {
      throw members.invalid("reduction", .leftOutBeside("strength"))
    }
    let sensitivity = try members.number("sensitivity", in: 0.5...2)
    let adapt = try members.flag("adapt")
    if method == .voice {
      for (name, isGiven) in [("sensitivity", sensitivity != nil), ("adapt", adapt != nil)] where isGiven {
        throw members.invalid(name, .leftOutWithMethod("voice"))
      }
    }
    let output: DenoiseSettings.Output? = try members.choice("output")
    let link: ChannelLink? = try members.choice("link")
    let format: OutputFormat? = try members.choice("format")
    let loudness = try members.number("loudness", in: DenoiseParameters.loudnessRange)
    let edit = try members.edit()
    if method == .editOnly {
      let given: [(String, Bool)] = [
        ("noise", members.value("noise") != nil), ("strength", strength != nil), ("reduction", reduction != nil),
        ("sensitivity", sensitivity != nil), ("adapt", adapt != nil), ("link", link != nil),
      ]
      if let (name, _) = given.first(where: \.1) { throw members.invalid(name, .leftOutWithMethod("none")) }
      guard edit != nil else { throw members.invalid("edit", .givenWithMethod("none")) }
    }
    return DenoiseParameters(
      noise: noise,
      settings: DenoiseSettings(
        method: method ?? .mmseLSA,
        reductionDB: reduction ?? (strength ?? .natural).reductionDB(method ?? .mmseLSA),
        sensitivity: sensitivity ?? 1, output: output ?? .denoised, link: link,
        adaptation: DenoiseParameters.adaptation(asked: adapt, noise: noise)), format: format ?? .same,
      loudness: loudness, edit: edit)
  }

  /// Checks what can be known before the job: that the regions are within the recording and long enough to learn from,
  /// or that the recording is, for a quantile; and that boxes are within it.
  static func check(_ asked: DenoiseParameters, fits format: SoundShape) throws {
    try asked.edit?.check(fits: format)
    // Without `noise`, a recording that is too short to learn from stays as it is.
    if let noise = asked.noise { try check(noise, fits: format) }
  }

  /// Checks the regions, or the recording if there are none.
  static func check(_ noise: NoiseSource?, fits format: SoundShape) throws {
    switch noise {
    case .profile: return
    case nil, .quantile:
      let needed = QuantileProfileBuilder.minimumFrames(sampleRate: format.sampleRate)
      guard let frames = format.frames, frames < needed else { return }
      throw RequestError.recordingTooShort(frames: frames, NoiseNeeds(frames: needed, sampleRate: format.sampleRate))
    case .region(let region): try check(region, fits: format)
    case .regions(let regions): for region in regions { try check(region, fits: format) }
    }
  }

  private static func check(_ region: NoiseSource.Region, fits format: SoundShape) throws {
    let (rate, needed) = (format.sampleRate, NoiseProfile.minimumFrames(sampleRate: format.sampleRate))
    guard let frames = region.frames(sampleRate: rate, total: format.frames) else {
      throw RequestError.noiseRegionOutside(start: region.start, end: region.end, duration: format.duration ?? 0)
    }
    guard frames.count >= needed else {
      throw RequestError.noiseRegionTooShort(
        frames: Int64(frames.count), NoiseNeeds(frames: needed, sampleRate: rate))
    }
  }
}

extension Context {
  /// Whether the method `voice` is installed. Looks at the disk, because it may be installed meanwhile.
  var hasVoice: Bool { VoiceFile.isInstalled(at: configuration.voice) }

  /// Returns what a request asks for. Throws if its method isn't installed.
  func usable(_ asked: DenoiseParameters) throws -> DenoiseParameters {
    guard asked.settings.method != .voice || hasVoice else { throw RequestError.methodUnavailable }
    return asked
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

extension JSONMembers {
  /// The member `noise`, which is “auto” or an object of one form: `{"start":…,"end":…}`, `{"regions":[…]}`,
  /// `{"quantile":…}` or `{"profile":…}`. Returns nil for `auto`.
  func noiseSource(mayBeProfile: Bool) throws -> NoiseSource? {
    guard let value = value("noise"), value != .string("auto") else { return nil }
    let noise = try nested(value, as: "noise", expecting: .noise)
    let (start, end) = (try noise.number("start", in: 0...1e9), try noise.number("end", in: 0...1e9))
    let regions = try noise.noiseRegions()
    let quantile = try noise.number("quantile", in: 0.01...0.9)
    let profile = mayBeProfile ? try noise.string("profile") : nil
    let forms = [
      ("start", start != nil || end != nil), ("regions", regions != nil), ("quantile", quantile != nil),
      ("profile", profile != nil),
    ].filter(\.1).map(\.0)
    guard forms.count < 2 else { throw noise.invalid(forms[0], .alone(among: forms)) }
    if let regions { return .regions(regions) }
    if let quantile { return .quantile(quantile) }
    if let profile { return .profile(profile) }
    guard let end else { throw noise.invalid("end", .givenWith("start")) }
    guard let start else { throw noise.invalid("start", .startOfRegion) }
    guard start < end else { throw noise.invalid("end", .afterStart(limit: nil)) }
    return .region(start: start, end: end)
  }

  private func noiseRegions() throws -> [NoiseSource.Region]? {
    let limit = NoiseSource.regionLimit
    let elements = try objects(
      "regions", count: 1...limit, names: ["start", "end"], expecting: .noiseRegions(limit: limit))
    var last = 0.0
    return try elements?.map { element in
      guard let start = try element.number("start", in: 0...1e9) else { throw element.invalid("start", .given) }
      guard let end = try element.number("end", in: 0...1e9) else { throw element.invalid("end", .given) }
      guard start < end else { throw element.invalid("end", .afterStart(limit: nil)) }
      guard start >= last else { throw element.invalid("start", .afterPreviousRegion) }
      last = end
      return NoiseSource.Region(start: start, end: end)
    }
  }
}

extension JSONMembers {
  /// The member `edit`, an object with boxes; nil if it is left out.
  fileprivate func edit() throws -> SoundEdit? {
    guard let value = value("edit") else { return nil }
    let limit = SoundEdit.boxLimit
    let edit = try nested(value, as: "edit", expecting: .edit)
    let names = ["start", "end", "min_hz", "max_hz", "gain_db"]
    guard let boxes = try edit.objects("boxes", count: 1...limit, names: names, expecting: .boxes(limit: limit)) else {
      throw edit.invalid("boxes", .boxes(limit: limit))
    }
    return SoundEdit(try boxes.map { try $0.box() })
  }

  private func box() throws -> EditBox {
    let (start, end) = (try number("start", in: 0...1e9), try number("end", in: 0...1e9))
    let (low, high) = (try number("min_hz", in: 0...1e6), try number("max_hz", in: 0...1e6))
    guard let gain = try number("gain_db", in: SoundEdit.gains) else { throw invalid("gain_db", .given) }
    let box = EditBox(start: start, end: end, minHz: low, maxHz: high, gainDB: gain)
    if let end = box.end, end <= box.start ?? 0 { throw invalid("end", .afterStart(limit: nil)) }
    if let high = box.maxHz, high <= box.minHz ?? 0 { throw invalid("max_hz", .above("min_hz")) }
    return box
  }
}

extension SoundEdit {
  /// Throws if a box begins after the recording's end, or reaches over half its sample rate.
  fileprivate func check(fits format: SoundShape) throws {
    if let box = firstBox(above: format.sampleRate) {
      let limit = Double(format.sampleRate) / 2
      let name = boxes[box].maxHz == nil ? "min_hz" : "max_hz"
      throw RequestError.invalidMember("edit.boxes[\(box)].\(name)", .number(0...limit))
    }
    guard let duration = format.duration else { return }
    for (index, box) in boxes.enumerated() {
      guard let start = box.start, start >= duration else { continue }
      throw RequestError.windowOutside(start: start, duration: duration, parameter: "edit.boxes[\(index)].start")
    }
  }
}
