import HTTP
import Storage
import Synchronization
import Waveform

/// `GET …/waveform` and its other forms: one window of a recording, as far as it has been read.
struct Waveforms: Sendable {
  let context: Context

  private static let datType = "application/vnd.bbc.audiowaveform"

  @Sendable func slice(_ request: HTTPRequest, _ parameters: PathParameters) throws -> HTTPAnswer {
    let type = try request.preferredType(among: ["application/json", Self.datType])
    return try answer(request, parameters, form: type == Self.datType ? .dat(version: 2) : .json)
  }

  @Sendable func dat(_ request: HTTPRequest, _ parameters: PathParameters) throws -> HTTPAnswer {
    try answer(request, parameters, form: .dat(version: 2))
  }

  @Sendable func strictJSON(_ request: HTTPRequest, _ parameters: PathParameters) throws -> HTTPAnswer {
    try answer(request, parameters, form: .strictJSON)
  }

  @Sendable func peaks(_ request: HTTPRequest, _ parameters: PathParameters) throws -> HTTPAnswer {
    try answer(request, parameters, form: .peaksJSON)
  }

  private static let known = ["start", "end", "scale", "width", "channels", "measures", "bits"]
  private static let knownOfDat = known + ["version"]

  private func answer(
    _ request: HTTPRequest, _ parameters: PathParameters, form: WaveformForm
  ) throws -> HTTPAnswer {
    let query = try QueryParameters(request, known: form == .dat(version: 2) ? Self.knownOfDat : Self.known)
    let asked = try WaveformQuery(query)
    let form = try Self.version(of: form, query)
    let text = parameters["id"]
    guard let id = RecordingID(text) else { throw ServiceError.noSuchRecording(text) }
    let key = SliceTable.Key(recording: id, query: asked, form: form)
    if let known = context.waveforms.slices[key] { return .now(HTTPResponse(known, for: request)) }
    return .later { try await make(key, for: request) }
  }

  private func make(_ key: SliceTable.Key, for request: HTTPRequest) async throws -> HTTPResponse {
    try await context.waveforms.answer { open in
      let version = context.waveforms.slices.version(key)
      return try await make(key, version, of: open(key.recording), for: request)
    }
  }

  private func make(
    _ key: SliceTable.Key, _ version: UInt64, of waveform: OpenWaveform, for request: HTTPRequest
  ) async throws -> HTTPResponse {
    let (id, form) = (key.recording, key.form)
    let window = try WaveformWindow(key.query, of: waveform.extent)
    try window.check(form)
    let etag = waveform.extent.isComplete ? Self.entityTag(id, window, form) : nil
    var representation = Representation(
      body: .empty, contentType: Self.contentType(of: form), etag: etag,
      cacheControl: etag == nil ? "no-store" : "private, max-age=31536000, immutable", fields: Self.fields(window))
    if let spared = HTTPResponse(sparing: representation, for: request) { return spared }
    representation.body = try await body(of: WaveformDocument(window, as: form), from: waveform, for: request)
    if waveform.extent.isComplete { context.waveforms.slices.keep(representation, for: key, version: version) }
    return HTTPResponse(representation, for: request)
  }

  /// The maximum number of values written at once: this takes about as long as a switch to another queue and back, and
  /// is kept for a slow client.
  private static let numbersWrittenAtOnce = 20_000
  /// The number of values in a piece of a longer response: 10 to 14 KB of text.
  private static let numbersOfAPiece = 2048

  /// Writes a window of ordinary size at once. A window that reads samples or is long is written on another queue, in
  /// the client's turn, and a long one only as fast as the client reads it.
  private func body(
    of document: WaveformDocument, from waveform: OpenWaveform, for request: HTTPRequest
  ) async throws -> ResponseBody {
    let window = document.window
    let drawings = context.drawings
    if window.numberCount > Self.numbersWrittenAtOnce {
      let client = context.client(of: request)
      try await drawings.run(for: client) { try waveform.check(window) }
      let pieces = Pieces(document.pieces(ofNumbers: Self.numbersOfAPiece), waveform)
      return .stream(length: document.byteCount) {
        try await drawings.run(for: client, isUnderWay: true) { try pieces.next() }
      }
    }
    guard window.needsSamples else { return .bytes(document.bytes(of: try waveform.slice(window))) }
    return .bytes(
      try await drawings.run(for: context.client(of: request)) { document.bytes(of: try waveform.slice(window)) })
  }

  /// The pieces of one answer. A response has one producer, which asks for one piece at a time.
  private final class Pieces: Sendable {
    private let pieces: Mutex<WaveformDocument.Pieces>
    private let waveform: OpenWaveform

    init(_ pieces: WaveformDocument.Pieces, _ waveform: OpenWaveform) {
      self.pieces = Mutex(pieces)
      self.waveform = waveform
    }

    func next() throws -> [UInt8]? {
      var rest = pieces.withLock { $0 }
      let piece = try rest.next(waveform.slice)
      pieces.withLock { [rest] in $0 = rest }
      return piece
    }
  }

  private static func version(of form: WaveformForm, _ query: QueryParameters) throws -> WaveformForm {
    guard case .dat = form, let version = try query.integer("version", in: 1...2) else { return form }
    return .dat(version: version)
  }

  private static func contentType(of form: WaveformForm) -> String {
    if case .dat = form { return datType }
    return "application/json"
  }

  /// A recording's audio never changes, so its id, the form's version, and the window identify the bytes.
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

  /// Facts that some of the bodies have no place for.
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
  /// Parses a window's parameters from a query.
  init(_ query: QueryParameters) throws {
    self.init()
    start = try query.number("start")
    end = try query.number("end")
    let scale = try query.integer("scale", in: 1...WaveformWindow.scaleLimit)
    let width = try query.integer("width", in: 1...WaveformWindow.pixelLimit)
    if scale != nil, width != nil {
      throw RequestError.twoResolutions
    }
    resolution = scale.map(WaveformResolution.scale) ?? .width(width ?? 2000)
    if let channels = try Self.channels(query) { self.channels = channels }
    if let measures = try Self.measures(query) { self.measures = measures }
    if let bits = query.string("bits") {
      guard let known = Int(digits: bits).flatMap(SampleBits.init(rawValue:)) else {
        throw query.invalid("bits", bits, .oneOf(["8", "16"]))
      }
      self.bits = known
    }
  }

  static func channels(_ query: QueryParameters) throws -> ChannelSelection? {
    switch query.string("channels") {
    case nil: return nil
    case "mix": return .mix
    case "split": return .split
    case let text?:
      guard let number = Int(digits: text), number >= 0 else {
        throw query.invalid("channels", text, .channels)
      }
      return .channel(number)
    }
  }

  private static func measures(_ query: QueryParameters) throws -> Measures? {
    guard let text = query.string("measures") else { return nil }
    var measures: Measures = []
    for name in text.split(separator: ",", omittingEmptySubsequences: false) {
      switch name {
      case "peak": measures.insert(.peak)
      case "rms": measures.insert(.rms)
      case "average": measures.insert(.average)
      default: throw query.invalid("measures", text, .someOf(["peak", "rms", "average"]))
      }
    }
    return measures
  }
}
