import HTTP
import Jobs
import Storage
import Waveform

/// `GET …/waveform.png` and `…/waveform.svg`: one window of a recording as a picture, with another drawn over it.
struct WaveformPictures: Sendable {
  let context: Context

  private enum Form: String {
    case png, svg

    var contentType: String { self == .png ? "image/png" : "image/svg+xml" }
  }

  private static let known = [
    "start", "end", "scale", "width", "height", "pixel_ratio", "channels", "color", "background", "axis",
    "amplitude_scale", "style", "overlay", "overlay_color",
  ]

  @Sendable func png(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try await answer(request, parameters, caller, form: .png)
  }

  @Sendable func svg(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try await answer(request, parameters, caller, form: .svg)
  }

  private func answer(
    _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller, form: Form
  ) async throws -> HTTPResponse {
    let query = try QueryParameters(request, known: Self.known)
    let window = try WaveformQuery(picture: query)
    let style = try PictureStyle(query)
    let overlayID = try Self.overlay(query)
    let text = parameters["id"]
    guard let id = RecordingID(text) else { throw ServiceError.noSuchRecording(text) }
    return try await context.waveforms.answer(of: caller.tenant) { open in
      let recording = try await open(id)
      let overlay = try await openOverlay(overlayID, caller, open)
      return try await answer(request, caller, window, style, recording, overlay, form)
    }
  }

  private func answer(
    _ request: HTTPRequest, _ caller: Caller, _ window: WaveformQuery, _ style: PictureStyle,
    _ recording: OpenWaveform, _ overlay: OpenWaveform?, _ form: Form
  ) async throws -> HTTPResponse {
    let picture = try WaveformPicture(window, style: style, of: recording.extent, overlay: overlay?.extent)

    let isFinal = recording.extent.isComplete && overlay?.extent.isComplete != false
    var answer = Representation(
      body: .empty, contentType: form.contentType,
      etag: isFinal ? Self.entityTag(recording.recording, overlay?.recording, picture, form) : nil,
      cacheControl: isFinal ? context.immutable : "no-store",
      fields: [
        "Content-Security-Policy": "sandbox",
        "Stillwave-Start-Frame": "\(picture.startFrame)",
        "Stillwave-Available-Frames": "\(recording.extent.availableFrames)",
        "Stillwave-Complete": recording.extent.isComplete ? "true" : "false",
      ])
    if let spared = HTTPResponse(sparing: answer, for: request) { return spared }
    var fetched: [LocalFile?] = []
    defer { withExtendedLifetime(fetched) {} }
    for (waveform, window) in [(recording, picture.window), (overlay, picture.overlayWindow)] {
      guard let waveform, let window else { continue }
      fetched.append(try await context.waveforms.fetch(window, of: waveform, for: caller.client))
    }
    let needsReader =
      recording.needsReader(picture.window) || picture.overlayWindow.map { overlay?.needsReader($0) ?? false } ?? false
    let client = caller.client
    let lane = needsReader ? context.samples : context.drawings
    answer.body = .bytes(
      try await lane.run(for: client, of: recording.recording, countsAsJob: true) {
        try Self.draw(picture, recording, overlay, form, for: client)
      })
    return HTTPResponse(answer, for: request)
  }

  private func openOverlay(
    _ id: RecordingID?, _ caller: Caller, _ open: (RecordingID) async throws -> OpenWaveform
  ) async throws -> OpenWaveform? {
    guard let id else { return nil }
    do {
      return try await open(id)
    } catch {
      let cause = await context.cause(of: error, about: id, caller)
      guard case ServiceError.noSuchRecording(let text) = cause else { throw cause }
      throw RequestError.noSuchOverlay(text)
    }
  }

  /// Reads the data for a picture and draws it. Blocks.
  private static func draw(
    _ picture: WaveformPicture, _ recording: OpenWaveform, _ overlay: OpenWaveform?, _ form: Form,
    for client: Client
  ) throws -> [UInt8] {
    let slice = try recording.slice(picture.window, for: client)
    var over: WaveformSlice?
    if let overlay, let window = picture.overlayWindow { over = try overlay.slice(window, for: client) }
    switch form {
    case .png: return try picture.png(slice, overlay: over)
    case .svg: return picture.svg(slice, overlay: over)
    }
  }

  /// Finished recordings never change, so their ids and the picture's signature name the bytes.
  private static func entityTag(
    _ id: RecordingID, _ overlay: RecordingID?, _ picture: WaveformPicture, _ form: Form
  ) -> String {
    "\"\(form.rawValue)\(picture.signature)-\(id)\(overlay.map { "-\($0)" } ?? "")\""
  }

  private static func overlay(_ query: QueryParameters) throws -> RecordingID? {
    guard let text = query.string("overlay") else { return nil }
    guard let id = RecordingID(text) else { throw query.invalid("overlay", text, .recordingID) }
    return id
  }
}

extension WaveformQuery {
  /// Parses a picture's window from a query.
  init(picture query: QueryParameters) throws {
    self.init(resolution: .width(PictureStyle.defaultWidth))
    start = try query.number("start")
    end = try query.number("end")
    let scale = try query.integer("scale", in: 1...WaveformWindow.scaleLimit)
    let width = try query.integer("width", in: 1...PictureStyle.widthLimit)
    if scale != nil, width != nil {
      throw RequestError.twoResolutions
    }
    if let scale { resolution = .scale(scale) }
    if let width { resolution = .width(width) }
    if let channels = try Self.channels(query) { self.channels = channels }
  }
}

extension PictureStyle {
  /// Parses a picture's style from a query.
  init(_ query: QueryParameters) throws {
    self.init()
    if let height = try query.integer("height", in: 1...Self.heightLimit) { self.height = height }
    if let ratio = try Self.number("pixel_ratio", in: Self.pixelRatios, query) { pixelRatio = ratio }
    color = try Self.color("color", query)
    overlayColor = try Self.color("overlay_color", query)
    if let color = try Self.color("background", query) { background = color }
    axis = try query.flag("axis")
    if let amplitude = try Self.amplitude(query) { self.amplitude = amplitude }
    if let look: PictureLook = try query.choice("style") { self.look = look }
  }

  private static func color(_ name: String, _ query: QueryParameters) throws -> PictureColor? {
    guard let text = query.string(name) else { return nil }
    guard let color = PictureColor(text) else {
      throw query.invalid(name, text, .color(names: PictureColor.names))
    }
    return color
  }

  private static func amplitude(_ query: QueryParameters) throws -> PictureAmplitude? {
    let name = "amplitude_scale"
    guard let text = query.string(name) else { return nil }
    if text == "auto" { return .auto }
    guard let factor = Double(decimal: text), amplitudeFactors.contains(factor) else {
      throw query.invalid(name, text, .amplitude(amplitudeFactors))
    }
    return .factor(factor)
  }

  private static func number(
    _ name: String, in range: ClosedRange<Double>, _ query: QueryParameters
  ) throws -> Double? {
    guard let text = query.string(name) else { return nil }
    guard let number = Double(decimal: text), range.contains(number) else {
      throw query.invalid(name, text, .number(range))
    }
    return number
  }
}
