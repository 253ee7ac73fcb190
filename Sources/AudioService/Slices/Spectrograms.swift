import Denoise
import HTTP
import Jobs
import Storage
import Waveform

/// `GET …/spectrogram` and `…/spectrogram.png`: one window of a recording's spectrogram, as far as it has been read.
struct Spectrograms: Sendable {
  let context: Context

  private static let known = [
    "start", "end", "scale", "width", "height", "channels", "frequency_scale", "min_hz", "max_hz", "min_db", "max_db",
    "window",
  ]

  @Sendable func values(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    let query = try QueryParameters(request, known: Self.known)
    return try await answer(request, parameters, caller, try SpectrogramQuery(query), palette: nil)
  }

  @Sendable func png(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    let query = try QueryParameters(request, known: Self.known + ["palette"])
    let asked = try SpectrogramQuery(query)
    let palette: PicturePalette? = try query.choice("palette")
    return try await answer(request, parameters, caller, asked, palette: palette ?? .magma)
  }

  private func answer(
    _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller, _ query: SpectrogramQuery,
    palette: PicturePalette?
  ) async throws -> HTTPResponse {
    let text = parameters["id"]
    guard let id = RecordingID(text) else { throw ServiceError.noSuchRecording(text) }
    return try await context.waveforms.answer(of: caller.tenant) { open in
      let recording = try await open(id)
      let extent = recording.spectrogramExtent
      let tile = try SpectrogramTile(query, of: extent)
      var answer = Representation(
        body: .empty, contentType: palette == nil ? "application/octet-stream" : "image/png",
        etag: extent.isComplete ? Self.entityTag(id, tile, palette) : nil,
        cacheControl: extent.isComplete ? context.immutable : "no-store",
        fields: tile.fields(isComplete: extent.isComplete))
      if let spared = HTTPResponse(sparing: answer, for: request) { return spared }
      let client = caller.client
      let fetched = try await context.waveforms.fetchSound(of: recording, for: client)
      defer { withExtendedLifetime(fetched) {} }
      answer.body = .bytes(
        try await context.samples.run(for: client, of: id, countsAsJob: true) {
          let values = try recording.values(of: tile, for: client)
          return try palette?.png(values, width: tile.columnCount, height: tile.height) ?? values
        })
      return HTTPResponse(answer, for: request)
    }
  }

  /// A recording's audio never changes, so its id and the tile name the values.
  private static func entityTag(_ id: RecordingID, _ tile: SpectrogramTile, _ palette: PicturePalette?) -> String {
    let words = tile.words.map { String($0, radix: 36) }.joined(separator: ".")
    return "\"g1-\(id)-\(palette?.rawValue ?? "b")-\(words)\""
  }
}

extension SpectrogramTile {
  /// The fields that describe the tile.
  func fields(isComplete: Bool, contentType: String? = nil) -> HTTPFields {
    var fields: HTTPFields = [
      "Stillwave-Scale": "\(scale)", "Stillwave-Start-Frame": "\(startFrame)", "Stillwave-Columns": "\(columnCount)",
      "Stillwave-Complete": isComplete ? "true" : "false",
    ]
    if let contentType { fields["Content-Type"] = contentType }
    return fields
  }
}

extension SpectrogramQuery {
  /// Parses a spectrogram's parameters from a query. Their ranges are checked with the tile.
  fileprivate init(_ query: QueryParameters) throws {
    self.init()
    start = try query.number("start")
    end = try query.number("end")
    let scale = try query.integer("scale", in: SpectrogramTile.scales)
    let width = try query.integer("width", in: SpectrogramTile.widths)
    if scale != nil, width != nil { throw RequestError.twoResolutions }
    if let scale { resolution = .scale(scale) }
    if let width { resolution = .width(width) }
    if let height = try query.integer("height", in: SpectrogramTile.heights) { self.height = height }
    if let channels = try WaveformQuery.channels(query) { self.channels = channels }
    if let scale: FrequencyScale = try query.choice("frequency_scale") { frequencyScale = scale }
    minHz = try query.decimal("min_hz")
    maxHz = try query.decimal("max_hz")
    if let level = try query.decimal("min_db") { minDB = level }
    if let level = try query.decimal("max_db") { maxDB = level }
    if let window = try query.integer("window", in: SpectrogramTile.windows) { self.window = window }
  }
}
