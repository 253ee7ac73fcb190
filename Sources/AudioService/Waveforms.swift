import AudioIO
import HTTP
import Processing
import Storage
import Waveform

/// `GET …/waveform` and its other forms: one window of a recording, as far as it has been read.
struct Waveforms: Sendable {
  let context: Context

  private static let datType = "application/vnd.bbc.audiowaveform"

  @Sendable func slice(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    let wantsDat = request.fields["Accept"]?.lowercased().contains(Self.datType) ?? false
    return try await answer(request, parameters, form: wantsDat ? .dat(version: 2) : .json)
  }

  @Sendable func dat(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try await answer(request, parameters, form: .dat(version: 2))
  }

  @Sendable func strictJSON(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try await answer(request, parameters, form: .strictJSON)
  }

  @Sendable func peaks(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try await answer(request, parameters, form: .peaksJSON)
  }

  private func answer(
    _ request: HTTPRequest, _ parameters: PathParameters, form: WaveformForm
  ) async throws -> HTTPResponse {
    var query = try QueryParameters(request)
    let asked = try WaveformQuery(&query)
    let form = try Self.version(of: form, &query)
    try query.end()
    let text = parameters["id"]
    guard let id = RecordingID(text) else { throw ServiceError.noSuchRecording(text) }
    let waveform = try await context.waveforms.open(id)
    let window = try WaveformWindow(asked, of: waveform.extent)
    try window.check(form)
    let etag = waveform.extent.isComplete ? Self.entityTag(id, window, form) : nil
    let bytes = try await bytes(of: window, in: waveform, as: form)
    return HTTPResponse(
      Representation(
        body: .bytes(bytes), contentType: Self.contentType(of: form), etag: etag,
        cacheControl: etag == nil ? "no-store" : "private, max-age=31536000, immutable",
        fields: Self.fields(window)),
      for: request)
  }

  /// Numbers that are written in about the time of a hop to another queue and back.
  private static let numbersWrittenAtOnce = 20_000

  /// A window of usual size at once; what reads samples or writes a lot off the connection's queue, where others wait.
  private func bytes(
    of window: WaveformWindow, in waveform: OpenWaveform, as form: WaveformForm
  ) async throws -> [UInt8] {
    guard window.pixelCount > 0 else { return Self.encode(WaveformSlice(window, samples: [Int16]().span), as: form) }
    if window.needsSamples, let path = waveform.audioPath {
      return try await context.work.run { () throws(AudioIOError) in
        Self.encode(try SampleWindow(path: path).slice(window), as: form)
      }
    }
    guard let pyramid = waveform.pyramid else { preconditionFailure("pixels without a pyramid") }
    guard window.numberCount > Self.numbersWrittenAtOnce else {
      return Self.encode(try pyramid.slice(window), as: form)
    }
    return try await context.work.run { () throws(WaveformError) in Self.encode(try pyramid.slice(window), as: form) }
  }

  private static func version(of form: WaveformForm, _ query: inout QueryParameters) throws -> WaveformForm {
    guard case .dat = form, let version = try query.integer("version", in: 1...2) else { return form }
    return .dat(version: version)
  }

  private static func encode(_ slice: WaveformSlice, as form: WaveformForm) -> [UInt8] {
    switch form {
    case .json: slice.json()
    case .strictJSON: slice.strictJSON()
    case .dat(let version): slice.dat(version: version)
    case .peaksJSON: slice.peaksJSON()
    }
  }

  private static func contentType(of form: WaveformForm) -> String {
    if case .dat = form { return datType }
    return "application/json"
  }

  /// A recording's sound never changes, so its id, the form's version and the window name the bytes.
  private static func entityTag(_ id: RecordingID, _ window: WaveformWindow, _ form: WaveformForm) -> String {
    let query = window.query
    let kind =
      switch form {
      case .json: "j"
      case .strictJSON: "s"
      case .dat(let version): "d\(version)"
      case .peaksJSON: "p"
      }
    let channels =
      switch query.channels {
      case .mix: "m"
      case .split: "s"
      case .channel(let number): "\(number)"
      }
    return "\"w1-\(id)-\(kind)-\(window.scale)-\(window.firstPixel)-\(window.pixelCount)-\(channels)"
      + "-\(query.measures.rawValue)-\(query.bits.rawValue)\""
  }

  /// What has no room in some of the bodies.
  private static func fields(_ window: WaveformWindow) -> HTTPFields {
    [
      "Stillwave-Start-Frame": "\(window.startFrame)",
      "Stillwave-Available-Frames": "\(window.extent.availableFrames)",
      "Stillwave-Complete": window.extent.isComplete ? "true" : "false",
      "Vary": "Accept",
    ]
  }
}

extension WaveformQuery {
  /// Takes a window's parameters out of a request's query.
  init(_ query: inout QueryParameters) throws {
    self.init()
    start = try query.number("start")
    end = try query.number("end")
    let scale = try query.integer("scale", in: 1...WaveformWindow.scaleLimit)
    let width = try query.integer("width", in: 1...WaveformWindow.pixelLimit)
    if scale != nil, width != nil {
      throw Problem(
        .badRequest, code: "invalid_parameter", detail: "Only one of “scale” and “width” can be given.",
        parameter: "width")
    }
    resolution = scale.map(WaveformResolution.scale) ?? .width(width ?? 2000)
    if let channels = try Self.channels(&query) { self.channels = channels }
    if let measures = try Self.measures(&query) { self.measures = measures }
    if let bits = query.string("bits") {
      guard let known = Int(bits).flatMap(SampleBits.init(rawValue:)) else {
        throw query.invalid("bits", bits, "8 or 16")
      }
      self.bits = known
    }
  }

  private static func channels(_ query: inout QueryParameters) throws -> ChannelSelection? {
    switch query.string("channels") {
    case nil: return nil
    case "mix": return .mix
    case "split": return .split
    case let text?:
      guard let number = Int(text), number >= 0 else {
        throw query.invalid("channels", text, "mix, split or a channel's number from 0")
      }
      return .channel(number)
    }
  }

  private static func measures(_ query: inout QueryParameters) throws -> Measures? {
    guard let text = query.string("measures") else { return nil }
    var measures: Measures = []
    for name in text.split(separator: ",", omittingEmptySubsequences: false) {
      switch name {
      case "peak": measures.insert(.peak)
      case "rms": measures.insert(.rms)
      case "average": measures.insert(.average)
      default: throw query.invalid("measures", text, "any of peak, rms, average, separated by commas")
      }
    }
    return measures
  }
}
