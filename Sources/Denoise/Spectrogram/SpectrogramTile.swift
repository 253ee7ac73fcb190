import Terms

// A tile is a part of the spectrogram of the whole recording at its scale. Let r be the sample rate, N the length of
// the transforms, s the scale, and L the recording's length in frames. S = round(start · r), and E = max(round(end ·
// r), S + 1), both at most L.
//
//   columns        ⌊S / s⌋ ..< ⌈E / s⌉, counted from frame 0; the whole has ⌈L / s⌉
//   transforms     n = min(8, max(1, 4 s / N)) of each column. The i-th of column k is centered on frame
//                  c = k s + i s / n: it covers the frames c − N/2 ..< c + N/2; samples outside the recording are 0
//   ready columns  all if complete; else those whose transforms only cover frames that have been read
//
// s and N are powers of two, so every center is a whole frame. A width w selects the smallest s, from 64, with at most
// w columns. Nothing else depends on where a tile begins and ends, so tiles join without a seam.

/// A query resolved to whole columns, counted from frame 0 and limited to what is available.
package struct SpectrogramTile: Sendable, Hashable {
  /// Frames per column that can be asked for. A width may result in more.
  package static let scales = 64...(1 << 24)
  /// Number of columns, rows, and samples per transform.
  package static let (widths, heights, windows) = (1...4096, 1...2048, 256...16_384)
  /// The levels in dB.
  package static let levels = -120.0...0.0
  /// Maximum number of samples, of all channels, that the transforms of a tile may read: 32 times those of 1,024
  /// columns of stereo with transforms of 2,048.
  package static let sampleLimit: Int64 = 1 << 30

  /// Frames per column.
  package let scale: Int
  /// Index of the first column, counted from frame 0.
  package let firstColumn: Int64
  /// Number of columns available now.
  package let columnCount: Int
  /// Number of rows.
  package let height: Int
  /// The channels.
  package let channels: ChannelSelection
  /// The scale of the frequencies.
  package let frequencyScale: FrequencyScale
  /// Samples per transform.
  package let window: Int
  /// The frequencies at the lower and the upper edge, in Hz.
  package let minHz, maxHz: Double
  /// The levels of the values 0 and 255, in dB.
  package let minDB, maxDB: Double
  /// In Hz.
  package let sampleRate: Int
  /// Number of channels of the recording.
  package let channelCount: Int
  /// The recording's end; while it isn't known, the end of what can be read.
  package let endFrame: Int64
  /// The recording's frame that the file to read begins with.
  package private(set) var fileStart: Int64 = 0

  /// The first frame of the first column: a multiple of `scale`.
  package var startFrame: Int64 { firstColumn * Int64(scale) }

  /// Transforms per column, n.
  package var transformsPerColumn: Int { Self.transforms(scale, window) }

  /// Frames from the center of one transform to the next.
  var step: Int { scale / transformsPerColumn }

  /// Number of lanes: 1, or the number of channels.
  var lanes: Int { channels == .split ? channelCount : 1 }

  /// Number of bytes of the finished tile.
  package var byteCount: Int { columnCount * height }

  /// The frames of the recording that the transforms cover.
  package var frameRange: Range<Int64> {
    guard columnCount > 0 else { return startFrame..<startFrame }
    let half = Int64(window / 2)
    let last = startFrame + Int64(columnCount * scale - step)
    return max(startFrame - half, 0)..<min(last + half, endFrame)
  }

  /// Resolves a query. Throws if it's invalid; see `SpectrogramError`.
  package init(_ query: SpectrogramQuery, of extent: SpectrogramExtent) throws(SpectrogramError) {
    try Self.check(query, extent)
    (sampleRate, channelCount) = (extent.sampleRate, extent.channels)
    (height, channels, window) = (query.height, query.channels, query.window)
    (frequencyScale, minDB, maxDB) = (query.frequencyScale, query.minDB, query.maxDB)
    (minHz, maxHz) = try Self.band(query, sampleRate: extent.sampleRate)
    endFrame = extent.availableFrames

    let frames = try Self.frames(query, extent)
    let scale = Self.scale(query.resolution, frames)
    let columns = Self.columns(frames, scale)
    guard columns.count <= Self.widths.upperBound else {
      throw .tooManyColumns(count: Int64(columns.count), limit: Self.widths.upperBound)
    }
    let transforms = Self.transforms(scale, query.window)
    let samples = Int64(columns.count * transforms * query.window * extent.channels)
    guard samples <= Self.sampleLimit else { throw .tooManySamples(count: samples, limit: Self.sampleLimit) }
    var ready = Int64.max
    if !extent.isComplete {
      let needed = Int64(scale - scale / transforms + query.window / 2)
      ready = extent.availableFrames < needed ? 0 : (extent.availableFrames - needed) / Int64(scale) + 1
    }
    self.scale = scale
    firstColumn = columns.lowerBound
    columnCount = Int(max(0, min(columns.upperBound, ready) - columns.lowerBound))
  }

  /// Returns the tile for a file that has only the recording's frames from `frame` on.
  package func ofFile(from frame: Int64) -> SpectrogramTile {
    var tile = self
    tile.fileStart = frame
    return tile
  }

  static func transforms(_ scale: Int, _ window: Int) -> Int { min(8, max(1, 4 * scale / window)) }

  private static func check(_ query: SpectrogramQuery, _ extent: SpectrogramExtent) throws(SpectrogramError) {
    if case .channel(let channel) = query.channels, !(0..<extent.channels).contains(channel) {
      throw .channelOutOfRange(channel: channel, channels: extent.channels)
    }
    switch query.resolution {
    case .scale(let scale): try powerOfTwo(scale, "scale", scales)
    case .width(let width): try whole(width, "width", widths)
    }
    try powerOfTwo(query.window, "window", windows)
    let lanes = query.channels == .split ? extent.channels : 1
    try whole(query.height, "height", max(heights.lowerBound, lanes)...heights.upperBound)
    try number(query.minDB, "min_db", levels.lowerBound, levels.upperBound - 1)
    try number(query.maxDB, "max_db", query.minDB + 1, levels.upperBound)
  }

  private static func powerOfTwo(
    _ value: Int, _ parameter: String, _ range: ClosedRange<Int>
  ) throws(SpectrogramError) {
    guard range.contains(value), value & (value - 1) == 0 else {
      throw .notAPowerOfTwo(
        parameter: parameter, value: value, lowest: range.lowerBound, highest: range.upperBound)
    }
  }

  private static func whole(_ value: Int, _ parameter: String, _ range: ClosedRange<Int>) throws(SpectrogramError) {
    try number(Double(value), parameter, Double(range.lowerBound), Double(range.upperBound))
  }

  private static func number(
    _ value: Double, _ parameter: String, _ lowest: Double, _ highest: Double
  ) throws(SpectrogramError) {
    guard value >= lowest, value <= highest else {
      throw .outOfRange(parameter: parameter, value: value, lowest: lowest, highest: highest)
    }
  }

  /// The edges, at least 1 Hz apart.
  private static func band(
    _ query: SpectrogramQuery, sampleRate: Int
  ) throws(SpectrogramError) -> (Double, Double) {
    let highest = Double(sampleRate) / 2
    let isLogarithmic = query.frequencyScale == .log
    let low = query.minHz ?? (isLogarithmic ? min(20, highest / 2) : 0)
    try number(low, "min_hz", isLogarithmic ? min(1, highest / 2) : 0, max(highest - 1, highest / 2))
    let high = query.maxHz ?? highest
    try number(high, "max_hz", min(low + 1, highest), highest)
    return (low, high)
  }

  private static func frames(
    _ query: SpectrogramQuery, _ extent: SpectrogramExtent
  ) throws(SpectrogramError) -> Range<Int64> {
    let (start, end) = (query.start ?? 0, query.end)
    for (name, seconds) in [("start", start), ("end", end ?? 0)] where !(seconds >= 0 && seconds.isFinite) {
      throw .timeOutOfRange(parameter: name, seconds: seconds)
    }
    if let end, end <= start { throw .windowReversed(start: start, end: end) }
    let length = extent.length
    guard let end else {
      let first = Range(start: start, end: start + 1, sampleRate: extent.sampleRate).lowerBound
      return min(first, length)..<length
    }
    return Range(start: start, end: end, sampleRate: extent.sampleRate).clamped(to: 0..<length)
  }

  private static func scale(_ resolution: SpectrogramResolution, _ frames: Range<Int64>) -> Int {
    switch resolution {
    case .scale(let scale): return scale
    case .width(let width):
      var scale = scales.lowerBound
      while columns(frames, scale).count > width { scale *= 2 }
      return scale
    }
  }

  private static func columns(_ frames: Range<Int64>, _ scale: Int) -> Range<Int64> {
    let first = frames.lowerBound / Int64(scale)
    return first..<(frames.isEmpty ? first : (frames.upperBound + Int64(scale) - 1) / Int64(scale))
  }
}

// A tile as it travels between the service and the process that reads the samples: fifteen 64-bit words.
extension SpectrogramTile {
  /// The tile as words.
  package var words: [Int64] {
    let edges = [minHz, maxHz, minDB, maxDB].map { Int64(bitPattern: $0.bitPattern) }
    let scaleNumber = FrequencyScale.allCases.firstIndex(of: frequencyScale) ?? 0
    return [
      Int64(scale), firstColumn, Int64(columnCount), Int64(height), channels.word, Int64(scaleNumber), Int64(window),
      Int64(sampleRate), Int64(channelCount), endFrame, fileStart,
    ] + edges
  }

  /// Creates a tile from its words; nil if they aren't those of one.
  package init?(words: [Int64]) {
    guard words.count == 15, words[0] > 0, words[0] < 1 << 51, words[0] & (words[0] - 1) == 0,
      words[0] >= Self.scales.lowerBound, (0...(1 << 51)).contains(words[9]),
      (0...(words[9] / words[0] + 1)).contains(words[1]), Self.widths.contains(Int(words[2])),
      (1...1024).contains(words[8]), Self.heights.contains(Int(words[3])),
      let channels = ChannelSelection(word: words[4], channels: words[8]),
      FrequencyScale.allCases.indices.contains(Int(words[5])),
      Self.windows.contains(Int(words[6])), words[6] & (words[6] - 1) == 0, (1...1 << 31).contains(words[7]),
      (0...(1 << 51)).contains(words[10])
    else { return nil }
    let edges = words[11...].map { Double(bitPattern: UInt64(bitPattern: $0)) }
    guard edges.allSatisfy(\.isFinite), edges[0] < edges[1], edges[1] <= Double(words[7]) / 2, edges[2] < edges[3]
    else { return nil }
    (scale, firstColumn, columnCount, height) = (Int(words[0]), words[1], Int(words[2]), Int(words[3]))
    (self.channels, frequencyScale) = (channels, FrequencyScale.allCases[Int(words[5])])
    (window, sampleRate, channelCount) = (Int(words[6]), Int(words[7]), Int(words[8]))
    (endFrame, fileStart) = (words[9], words[10])
    (minHz, maxHz, minDB, maxDB) = (edges[0], edges[1], edges[2], edges[3])
    guard channels != .split || height >= channelCount, frequencyScale != .log || minHz > 0 else { return nil }
  }
}
