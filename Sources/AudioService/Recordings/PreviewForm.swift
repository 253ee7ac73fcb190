import Denoise
import HTTP
import Jobs
import Storage
import Terms
import Waveform
import Workers

/// What the response to a preview shows of it: the member `as`, and the members of the request that belong to it.
enum PreviewForm: Sendable {
  case audio(OutputFormat)
  case points(WaveformWindow, WaveformForm)
  /// Without a palette, the values.
  case spectrogram(SpectrogramTile, PicturePalette?)

  private enum Name: String, CaseIterable {
    case audio, points, spectrogram
  }

  private static let ofPoints = ["width", "measures", "channels", "bits"]
  private static let ofSpectrogram = [
    "scale", "width", "height", "channels", "frequency_scale", "min_hz", "max_hz", "min_db", "max_db", "window",
    "palette",
  ]

  /// The members that belong to forms.
  static let known: JSONMembers.Known = Dictionary(uniqueKeysWithValues: ofPoints.map { ($0, []) })
    .merging(["spectrogram": ofSpectrogram]) { $1 }

  /// `frames`: those of the preview.
  init(_ members: JSONMembers, _ request: HTTPRequest, _ frames: Range<Int64>, of source: Recording) throws {
    let name: Name = try members.choice("as") ?? .audio
    for (owner, names) in [(Name.points, Self.ofPoints), (.spectrogram, ["spectrogram"])] where owner != name {
      for member in names where members.value(member) != nil {
        throw members.invalid(member, .leftOutUnlessAs(owner.rawValue))
      }
    }
    let format = source.format, rate = format.sampleRate
    let (start, end) = (frames.startSeconds(sampleRate: rate), frames.endSeconds(sampleRate: rate))
    switch name {
    case .audio:
      let isPossible = source.audioFormat.map { (try? OutputFormat.flac.format(for: $0)) != nil } ?? false
      let types = ["audio/wav"] + (isPossible ? ["audio/flac"] : [])
      self = .audio(try request.preferredType(among: types) == "audio/flac" ? .flac : .wav)
    case .points:
      guard let total = format.frames else { throw ServiceError.notReady(source.id) }
      var query = WaveformQuery(start: start, end: end)
      try query.read(members)
      let extent = WaveformExtent(
        sampleRate: rate, channels: format.channels, availableFrames: total, totalFrames: total, isComplete: true)
      let type = try request.preferredType(among: [Waveforms.pointsType, "application/json"])
      let form = type == "application/json" ? WaveformForm.json : .points
      let window = try WaveformWindow(query, of: extent)
      try window.check(form)
      self = .points(window, form)
    case .spectrogram:
      guard let total = format.frames else { throw ServiceError.notReady(source.id) }
      var query = SpectrogramQuery()
      let asked = try members.value("spectrogram").map {
        try members.nested($0, as: "spectrogram", expecting: .objectWith(Self.ofSpectrogram))
      }
      if let asked { try query.read(asked) }
      (query.start, query.end) = (start, end)
      let palette: PicturePalette? = try asked?.choice("palette")
      let type = try request.preferredType(among: ["application/octet-stream", "image/png"])
      let extent = SpectrogramExtent(
        sampleRate: rate, channels: format.channels, availableFrames: total, length: total, isComplete: true)
      let tile = try SpectrogramTile(query, of: extent)
      self = .spectrogram(tile, type == "image/png" ? palette ?? .magma : nil)
    }
  }

  /// The format of the preview's file.
  var format: OutputFormat { if case .audio(let format) = self { format } else { .wav } }

  /// The recording's frames that the file must have; nil for those of the request's window.
  var frames: Range<Int64>? {
    switch self {
    case .audio: nil
    case .points(let window, _):
      window.frames(ofPixel: 0).lowerBound..<window.frames(ofPixel: max(window.pixelCount - 1, 0)).upperBound
    case .spectrogram(let tile, _): tile.frameRange
    }
  }

  /// The part of the recording that the file must have; nil for the request's window.
  func window(sampleRate: Int) -> TimeWindow? {
    frames.map { frames in
      TimeWindow(start: frames.startSeconds(sampleRate: sampleRate), end: frames.endSeconds(sampleRate: sampleRate))
    }
  }

  /// The fields that describe the body.
  var fields: HTTPFields {
    switch self {
    case .audio(let format): ["Content-Type": format == .flac ? "audio/flac" : "audio/wav"]
    case .points(let window, let form):
      [
        "Content-Type": form == .points ? Waveforms.pointsType : "application/json",
        "Stillwave-Start-Frame": "\(window.startFrame)",
        "Stillwave-Available-Frames": "\(window.extent.availableFrames)", "Stillwave-Complete": "true",
      ]
    case .spectrogram(let tile, let palette):
      tile.fields(isComplete: true, contentType: palette == nil ? "application/octet-stream" : "image/png")
    }
  }

  /// Returns the bytes of points or of a spectrogram. `read` calls its argument with a reader of the preview's file.
  func bytes(
    _ read: ((SampleReader) throws(ReaderFailure) -> [UInt8]) throws -> [UInt8]
  ) throws -> [UInt8] {
    let start = frames?.lowerBound ?? 0
    switch self {
    case .audio: return []
    case .points(let window, let form):
      return try read { (reader) throws(ReaderFailure) in
        WaveformDocument(window, as: form).bytes(of: try reader.slice(window, ofFileFrom: start))
      }
    case .spectrogram(let tile, let palette):
      let values = try read { (reader) throws(ReaderFailure) in try reader.values(of: tile.ofFile(from: start)) }
      return try palette?.png(values, width: tile.columnCount, height: tile.height) ?? values
    }
  }
}

extension WaveformQuery {
  /// Sets what the members of a preview say.
  fileprivate mutating func read(_ members: JSONMembers) throws {
    resolution = .width(try members.integer("width", in: 1...WaveformWindow.pixelLimit) ?? 2000)
    if let channels = try members.channels() { self.channels = channels }
    if let text = try members.string("measures") {
      guard let measures = Measures(names: text) else {
        throw members.invalid("measures", .someOf(["peak", "rms", "average"]))
      }
      self.measures = measures
    }
    if let number = try members.integer("bits", in: 8...16) {
      guard let bits = SampleBits(rawValue: number) else { throw members.invalid("bits", .oneOf(["8", "16"])) }
      self.bits = bits
    }
  }
}

extension SpectrogramQuery {
  /// Sets what the members of a preview's tile say. Most ranges are checked with the tile.
  fileprivate mutating func read(_ members: JSONMembers) throws {
    let scale = try members.integer("scale", in: SpectrogramTile.scales)
    let width = try members.integer("width", in: SpectrogramTile.widths)
    if scale != nil, width != nil { throw members.invalid("width", .leftOutBeside("scale")) }
    if let scale { resolution = .scale(scale) }
    if let width { resolution = .width(width) }
    if let height = try members.integer("height", in: SpectrogramTile.heights) { self.height = height }
    if let channels = try members.channels() { self.channels = channels }
    if let scale: FrequencyScale = try members.choice("frequency_scale") { frequencyScale = scale }
    minHz = try members.number("min_hz", in: 0...1e6)
    maxHz = try members.number("max_hz", in: 0...1e6)
    if let level = try members.number("min_db", in: SpectrogramTile.levels) { minDB = level }
    if let level = try members.number("max_db", in: SpectrogramTile.levels) { maxDB = level }
    if let window = try members.integer("window", in: SpectrogramTile.windows) { self.window = window }
  }
}

extension JSONMembers {
  /// A whole number.
  fileprivate func integer(_ member: String, in range: ClosedRange<Int>) throws -> Int? {
    guard let value = value(member) else { return nil }
    guard case .number(let number) = value, let whole = Int(exactly: number), range.contains(whole) else {
      throw invalid(member, .wholeNumber(range))
    }
    return whole
  }

  /// The member `channels`: a text as in a query, or the number of a channel.
  fileprivate func channels() throws -> ChannelSelection? {
    switch value("channels") {
    case nil: return nil
    case .string("mix"): return .mix
    case .string("split"): return .split
    case .number(let number) where number >= 0:
      guard let channel = Int(exactly: number) else { throw invalid("channels", .channels) }
      return .channel(channel)
    case .string(let text):
      guard let channel = Int(digits: text), channel >= 0 else { throw invalid("channels", .channels) }
      return .channel(channel)
    default: throw invalid("channels", .channels)
    }
  }
}
