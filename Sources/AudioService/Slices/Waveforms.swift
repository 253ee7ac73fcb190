import HTTP
import Jobs
import Storage
import Synchronization
import Terms
import Waveform

/// `GET …/waveform` and its other forms: one window of a recording, as far as it has been read.
struct Waveforms: Sendable {
  let context: Context

  private static let datType = "application/vnd.bbc.audiowaveform"
  static let pointsType = "application/vnd.stillwave.points"

  @Sendable func slice(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) throws -> HTTPAnswer {
    try answer(request, parameters, caller, form: nil)
  }

  @Sendable func dat(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) throws -> HTTPAnswer {
    try answer(request, parameters, caller, form: .dat(version: 2))
  }

  @Sendable func strictJSON(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) throws -> HTTPAnswer
  {
    try answer(request, parameters, caller, form: .strictJSON)
  }

  @Sendable func peaks(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) throws -> HTTPAnswer {
    try answer(request, parameters, caller, form: .peaksJSON)
  }

  @Sendable func points(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) throws -> HTTPAnswer {
    try answer(request, parameters, caller, form: .points)
  }

  private static let known = ["start", "end", "scale", "width", "channels", "measures", "bits"]
  private static let knownOfDat = known + ["version"]

  /// The slice that a request asks for.
  private final class Reading: Sendable {
    /// The key of no tenant.
    let key: SliceTable.Key

    /// Without a form, `Accept` chooses it.
    init(_ request: HTTPRequest, _ parameters: PathParameters, form: WaveformForm?) throws {
      let isNegotiated = form == nil
      let form = try form ?? Self.accepted(request)
      let known = form == .dat(version: 2) ? Waveforms.knownOfDat : Waveforms.known
      let query = try QueryParameters(request, known: known)
      let asked = try WaveformQuery(query)
      let version = try Waveforms.version(of: form, query)
      let text = parameters["id"]
      guard let id = RecordingID(text) else { throw ServiceError.noSuchRecording(text) }
      key = SliceTable.Key(tenant: .none, recording: id, query: asked, form: version, isNegotiated: isNegotiated)
    }

    private static func accepted(_ request: HTTPRequest) throws -> WaveformForm {
      switch try request.preferredType(among: ["application/json", Waveforms.datType, Waveforms.pointsType]) {
      case Waveforms.datType: .dat(version: 2)
      case Waveforms.pointsType: .points
      default: .json
      }
    }
  }

  private func answer(
    _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller, form: WaveformForm?
  ) throws -> HTTPAnswer {
    var key = try request.reading { try Reading(request, parameters, form: form) }.key
    key.tenant = caller.tenant
    return try answer(request, caller, key)
  }

  private func answer(_ request: HTTPRequest, _ caller: Caller, _ key: SliceTable.Key) throws -> HTTPAnswer {
    if let known = context.waveforms.slices[key] { return .now(HTTPResponse(known, for: request)) }
    if let response = try makeAtOnce(key, for: request) { return .now(response) }
    return .later { try await make(key, for: request, caller) }
  }

  /// Returns the response if the waveform is finished, open, and in memory, and making it takes no longer than a switch
  /// to another queue would. nil if it has to be made in the other way; also if the file turns out to be damaged.
  private func makeAtOnce(_ key: SliceTable.Key, for request: HTTPRequest) throws -> HTTPResponse? {
    let version = context.waveforms.slices.version(key)
    guard let waveform = context.waveforms.known(key.recording, of: key.tenant) else { return nil }
    switch try Answer(key, of: waveform, for: request, context.immutable) {
    case .spared(let response): return response
    case .needed(var representation, let window):
      guard window.numberCount <= Self.numbersWrittenAtOnce, let slice = waveform.sliceInMemory(window) else {
        return nil
      }
      representation.body = .bytes(WaveformDocument(window, as: key.form).bytes(of: slice))
      keep(representation, for: key, version: version)
      return HTTPResponse(representation, for: request)
    }
  }

  private func make(
    _ key: SliceTable.Key, for request: HTTPRequest, _ caller: Caller
  ) async throws -> HTTPResponse {
    try await context.waveforms.answer(of: key.tenant) { open in
      let version = context.waveforms.slices.version(key)
      let waveform = try await open(key.recording)
      switch try Answer(key, of: waveform, for: request, context.immutable) {
      case .spared(let response): return response
      case .needed(var representation, let window):
        representation.body = try await body(
          of: WaveformDocument(window, as: key.form), from: waveform, for: caller.client)
        if waveform.extent.isComplete { keep(representation, for: key, version: version) }
        return HTTPResponse(representation, for: request)
      }
    }
  }

  private func keep(_ slice: Representation, for key: SliceTable.Key, version: UInt64) {
    guard context.waveforms.slices.noteRequest(key) else { return }
    context.waveforms.slices.keep(slice, for: key, version: version)
  }

  /// What a request gets, except for the content.
  private enum Answer {
    /// The client already has the content.
    case spared(HTTPResponse)
    case needed(Representation, WaveformWindow)

    init(
      _ key: SliceTable.Key, of waveform: OpenWaveform, for request: HTTPRequest, _ immutable: String
    ) throws {
      let window = try WaveformWindow(key.query, of: waveform.extent)
      try window.check(key.form)
      let representation = Representation(
        body: .empty, allFields: Waveforms.fields(key, window, immutable))
      if let spared = HTTPResponse(sparing: representation, for: request) {
        self = .spared(spared)
      } else {
        self = .needed(representation, window)
      }
    }
  }

  /// The maximum number of values written at once: this takes about as long as a switch to another queue and back, and
  /// is kept for a slow client.
  private static let numbersWrittenAtOnce = 20_000
  /// The number of values in a piece of a longer response: 10 to 14 KB of text.
  private static let numbersOfAPiece = 2048

  /// Writes a window of ordinary size at once. A window that needs samples or is long is written on another queue, in
  /// the client's turn, and a long one only as fast as the client reads it.
  private func body(
    of document: WaveformDocument, from waveform: OpenWaveform, for client: @autoclosure () -> Client
  ) async throws -> ResponseBody {
    let window = document.window
    // An event loop must not wait for the answers of another machine.
    let needsReader = waveform.needsReader(window)
    if !context.media.isRemote, !needsReader, window.numberCount <= Self.numbersWrittenAtOnce {
      return .bytes(document.bytes(of: try waveform.slice(window, for: client())))
    }
    let drawings = needsReader ? context.samples : context.drawings
    let client = client()
    let fetched = try await context.waveforms.fetch(window, of: waveform, for: client)
    defer { withExtendedLifetime(fetched) {} }
    guard window.numberCount > Self.numbersWrittenAtOnce else {
      return .bytes(
        try await drawings.run(for: client, of: waveform.recording) {
          document.bytes(of: try waveform.slice(window, for: client))
        })
    }
    try await drawings.run(for: client, of: waveform.recording) { try waveform.check(window) }
    let pieces = Pieces(document.pieces(ofNumbers: Self.numbersOfAPiece), waveform, client)
    return .stream(length: document.byteCount) {
      try await drawings.run(for: client, of: waveform.recording, isUnderWay: true) { try pieces.next() }
    }
  }

  /// The pieces of one answer. A response has one producer, which asks for one piece at a time.
  private final class Pieces: Sendable {
    private let pieces: Mutex<WaveformDocument.Pieces>
    private let waveform: OpenWaveform
    private let client: Client

    init(_ pieces: WaveformDocument.Pieces, _ waveform: OpenWaveform, _ client: Client) {
      self.pieces = Mutex(pieces)
      (self.waveform, self.client) = (waveform, client)
    }

    func next() throws -> [UInt8]? {
      var rest = pieces.withLock { $0 }
      let piece = try rest.next { try waveform.slice($0, for: client) }
      pieces.withLock { [rest] in $0 = rest }
      return piece
    }
  }

  private static func version(of form: WaveformForm, _ query: QueryParameters) throws -> WaveformForm {
    guard case .dat = form, let version = try query.integer("version", in: 1...2) else { return form }
    return .dat(version: version)
  }

  /// All fields of a slice, with facts that some of the bodies have no place for.
  fileprivate static func fields(
    _ key: SliceTable.Key, _ window: WaveformWindow, _ immutable: String
  ) -> HTTPFields {
    let isComplete = window.extent.isComplete
    let isText = !key.form.isBinary
    return HTTPFields { fields in
      func add(_ name: StaticString, _ frames: Int64) { fields.add(name, room: 20) { $0.append(decimal: frames) } }
      add("Stillwave-Start-Frame", window.startFrame)
      add("Stillwave-Available-Frames", window.extent.availableFrames)
      if key.form == .points {
        if let total = window.extent.knownFrames {
          add("Stillwave-Total-Frames", total)
        } else if let estimate = window.extent.estimatedFrames {
          add("Stillwave-Estimated-Frames", estimate)
        }
      }
      fields.add("Stillwave-Complete", isComplete ? "true" : "false")
      // A cache would keep one copy per value of each field that is named, and browsers differ in theirs.
      switch (key.isNegotiated, isText) {
      case (true, true): fields.add("Vary", "Accept, Accept-Encoding")
      case (true, false): fields.add("Vary", "Accept")
      case (false, true): fields.add("Vary", "Accept-Encoding")
      case (false, false): break
      }
      fields.add("Cache-Control", isComplete ? immutable : "no-store")
      fields.add("Content-Type", isText ? "application/json" : key.form == .points ? pointsType : datType)
      if isComplete {
        fields.add("ETag", room: tagLimit) { appendEntityTag(key.recording, window, key.form, to: &$0) }
      }
    }
  }

  /// An upper bound on the bytes of an entity tag.
  private static let tagLimit = 256

  /// A recording's audio never changes, so its id, the form's version, and the window identify the bytes.
  private static func appendEntityTag(
    _ id: RecordingID, _ window: WaveformWindow, _ form: WaveformForm, to tag: inout OutputSpan<UInt8>
  ) {
    tag.append(literal: "\"w1-")
    id.appendText(to: &tag)
    switch form {
    case .json: tag.append(literal: "-j")
    case .strictJSON: tag.append(literal: "-s")
    case .dat(let version):
      tag.append(literal: "-d")
      tag.append(decimal: Int64(version))
    case .peaksJSON: tag.append(literal: "-p")
    case .points: tag.append(literal: "-b")
    }
    append(Int64(window.scale), to: &tag)
    append(window.firstPixel, to: &tag)
    append(Int64(window.pixelCount), to: &tag)
    switch window.query.channels {
    case .mix: tag.append(literal: "-m")
    case .split: tag.append(literal: "-s")
    case .channel(let number): append(Int64(number), to: &tag)
    }
    append(Int64(window.query.measures.rawValue), to: &tag)
    append(Int64(window.query.bits.rawValue), to: &tag)
    tag.append(literal: "\"")
  }

  private static func append(_ number: Int64, to tag: inout OutputSpan<UInt8>) {
    tag.append(literal: "-")
    tag.append(decimal: number)
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
    guard let measures = Measures(names: text) else {
      throw query.invalid("measures", text, .someOf(["peak", "rms", "average"]))
    }
    return measures
  }
}

extension Measures {
  /// Parses names separated by commas; nil if one is unknown.
  init?(names text: String) {
    self = []
    for name in text.split(separator: ",", omittingEmptySubsequences: false) {
      switch name {
      case "peak": insert(.peak)
      case "rms": insert(.rms)
      case "average": insert(.average)
      default: return nil
      }
    }
  }
}
