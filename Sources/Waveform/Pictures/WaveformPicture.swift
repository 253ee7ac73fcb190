// The contents of a picture and their positions.
//
//   ┌──────────────────────────┐ 0          lanes, stacked vertically: the mix, one channel, or each channel; zero is
//   │ lane 0                   │            in a lane's middle, and full scale reaches its edges
//   ├──────────────────────────┤ gap: 4 pixels, or 1 if lanes are narrow
//   │ lane 1                   │
//   ├──┬────┬────┬────┬────┬───┤ height − 22
//   │  0    5    10            │            the time axis, if requested
//   └──────────────────────────┘ height
//
// With a width, the picture shows exactly the window from `start` to `end` over that many pixels. With a scale, it
// shows the slice's own pixels one to one, so pictures of one scale can be joined side by side.
//
// A lane is an outline of the peaks in a lighter shade and, within it, one of the loudness (±RMS) in the full shade. An
// outline is at least a pixel high, so silence is a line at zero, and what has not been read yet is blank. If a column
// has at most 2 frames (`isLine`), the samples themselves are drawn: a line at zero, a line from each sample to the
// next, and dots if they are at least 5 pixels apart. Between that and 16 frames per column there is only the outline,
// in the full shade, because the loudness of so few samples equals the outline.
//
// The overlay is drawn in the same window in seconds, regardless of its rate and length: all of its lanes if it has as
// many channels as the recording, otherwise its mix in every lane.

/// A window of a recording as a picture, fully determined before anything is read.
package struct WaveformPicture: Sendable {
  /// The slice of the recording that `png` and `svg` need; its query requests peaks and RMS.
  package let window: WaveformWindow
  /// The slice of the overlay that they need, if there is one.
  package let overlayWindow: WaveformWindow?
  /// The style of the picture.
  package let style: PictureStyle
  /// The width in CSS pixels.
  package let width: Int
  /// The first frame of the recording that the picture shows.
  package let startFrame: Int64

  /// The end of the picture: a whole number of pixels for a scale, otherwise the end of the window.
  let endFrame: Double
  let recording: PictureLayer
  let overlay: PictureLayer?
  let lanes: Int

  /// Creates a picture from a query. `query.resolution` is the width in CSS pixels, or the frames per CSS pixel; the
  /// query's measures and bits are ignored. `overlay` is the extent of a second recording to draw on top.
  ///
  /// Throws the same errors as `WaveformWindow`, and `.pictureOutOfRange`, `.pictureTooWide`, and `.pictureTooLarge`.
  package init(
    _ query: WaveformQuery, style: PictureStyle, of extent: WaveformExtent, overlay overlayExtent: WaveformExtent? = nil
  ) throws(WaveformError) {
    try style.check()
    // Validates the query like that of any slice, except for its resolution, for which the picture has its own limits.
    var probe = query
    probe.resolution = .width(1)
    probe.measures = [.peak, .rms]
    probe.bits = .sixteen
    lanes = try WaveformWindow(probe, of: extent).lanes
    let span = try FrameSpan(query, of: extent)
    switch query.resolution {
    case .width(let pixels):
      _ = try span.scale(for: query.resolution)
      width = pixels
      (startFrame, endFrame) = (span.start, Double(span.end))
    case .scale:
      let scale = try span.scale(for: query.resolution)
      let first = span.start / Int64(scale)
      let count = max(span.endPixel(scale: scale) - first, 1)
      try Self.check(width: count, "scale", style, lanes: lanes)
      width = Int(count)
      startFrame = first * Int64(scale)
      endFrame = span.start < span.end ? Double((first + count) * Int64(scale)) : Double(startFrame)
    }
    try Self.check(width: Int64(width), "width", style, lanes: lanes)
    self.style = style
    let columns = style.columns(width: width)
    let (start, frames) = (Double(startFrame), endFrame - Double(startFrame))
    recording = try PictureLayer(probe, start: start, frames: frames, columns: columns, of: extent)
    window = recording.window
    if let other = overlayExtent {
      let rates = Double(other.sampleRate) / Double(extent.sampleRate)
      if other.channels != extent.channels { probe.channels = .mix }
      overlay = try PictureLayer(probe, start: start * rates, frames: frames * rates, columns: columns, of: other)
    } else {
      overlay = nil
    }
    overlayWindow = overlay?.window
  }

  private static func check(width: Int64, _ parameter: String, _ style: PictureStyle, lanes: Int) throws(WaveformError)
  {
    let across = (Double(width) * style.pixelRatio).rounded()
    guard across <= Double(PictureStyle.widthLimit) else {
      throw .pictureTooWide(parameter: parameter, pixels: Int64(across), limit: PictureStyle.widthLimit)
    }
    let pixels = across * (Double(style.height) * style.pixelRatio).rounded()
    guard pixels <= Double(PictureStyle.pixelLimit) else {
      throw .pictureTooLarge(pixels: Int64(pixels), limit: PictureStyle.pixelLimit)
    }
    let lowest = lanes * PictureStyle.leastLaneHeight + (style.axis ? PictureStyle.axisHeight : 0)
    guard style.height >= lowest else {
      throw .pictureOutOfRange(
        parameter: "height", value: Double(style.height), lowest: Double(lowest),
        highest: Double(PictureStyle.heightLimit))
    }
  }

  /// A text that identifies everything that determines the look of a picture of finished recordings, except the
  /// recordings: letters, digits, '.', and '-'. Must change whenever the drawing changes.
  package var signature: String {
    let channels =
      switch window.query.channels {
      case .mix: "m"
      case .split: "s"
      case .channel(let number): "\(number)"
      }
    let colors = [style.recordingColor(hasOverlay: overlay != nil), style.overlayInk, style.background]
    let amplitude =
      switch style.amplitude {
      case .auto: "auto"
      case .factor(let factor): "\(factor)"
      }
    return "3-\(startFrame)-\(endFrame)-\(channels)-\(width)x\(style.height)x\(style.pixelRatio)"
      + "-\(colors.map(\.hexadecimal).joined(separator: "."))-\(amplitude)"
      + "-\(style.look.rawValue)\(style.axis ? "-axis" : "")"
  }

  // MARK: Geometry

  /// Returns the positions of the lanes and the axis, with `unit` canvas pixels per CSS pixel.
  func layout(unit: Double) -> PictureLayout { PictureLayout(self, unit: unit) }

  /// The axis's ticks, with their distance from the left as a fraction of the width.
  var ticks: [(place: Double, label: String?)] {
    let rate = Double(window.extent.sampleRate)
    let (start, end) = (Double(startFrame) / rate, endFrame / rate)
    guard style.axis, end > start else { return [] }
    return TimeAxis(start: start, end: end, width: Double(width)).ticks.map { tick in
      ((tick.time - start) / (end - start), tick.label)
    }
  }
}

/// One recording's layer in a picture.
struct PictureLayer: Sendable {
  /// The slice that it is drawn from.
  let window: WaveformWindow
  /// The frame at the picture's left edge; fractional if the sample rates differ.
  let start: Double
  /// Number of frames across the picture.
  let frames: Double
  let columns: Int
  var framesPerColumn: Double { frames / Double(columns) }
  /// Whether to draw the samples themselves.
  let isLine: Bool
  /// Whether a column has enough frames for a meaningful loudness.
  var hasLoudness: Bool { !isLine && framesPerColumn >= 16 }

  init(
    _ query: WaveformQuery, start: Double, frames: Double, columns: Int, of extent: WaveformExtent
  ) throws(WaveformError) {
    (self.start, self.frames, self.columns) = (start, frames, columns)
    let rate = Double(extent.sampleRate)
    let perColumn = frames / Double(columns)
    // Samples can be read once the recording is complete; until then, the finest points are used.
    isLine =
      extent.isComplete && frames > 0 && perColumn <= 2
      && frames <= Double(WaveformWindow.pixelLimit - 4)
    var scale = isLine ? 1 : Self.scale(start: start, frames: frames, perColumn: perColumn)
    if !extent.isComplete { scale = max(scale, PeakKernel.pointFrames) }
    // Lines and outlines continue past the picture's edges.
    var margin = isLine ? 1 : perColumn
    if scale < PeakKernel.pointFrames, (frames + 2 * margin) / Double(scale) > Double(WaveformWindow.pixelLimit - 2) {
      margin = 0
    }
    let first = max((start - margin).rounded(.down), 0)
    let end = max((start + frames + margin).rounded(.up), first + 1)
    var query = query
    query.start = first / rate
    query.end = end / rate
    query.resolution = .scale(scale)
    window = try WaveformWindow(query, of: extent)
  }

  /// Returns the frames per pixel of the slice: a column's frames if they are a whole number, otherwise at most half of
  /// that. From 256 up it's that of a level of the pyramid, so a column has two to four whole points, and reading them
  /// takes a fifth of the time of folding others. Below that, slices have their own limit.
  private static func scale(start: Double, frames: Double, perColumn: Double) -> Int {
    let most = Double(WaveformWindow.scaleLimit)
    if perColumn >= 1, perColumn <= most, perColumn == perColumn.rounded(),
      start.truncatingRemainder(dividingBy: perColumn) == 0
    {
      return Int(perColumn)
    }
    let points = Double(PeakKernel.pointFrames)
    if perColumn >= points {
      let count = Int(max(min(perColumn / 2, most) / points, 1))
      return PeakKernel.pointFrames << (Int.bitWidth - 1 - count.leadingZeroBitCount)
    }
    let least = (frames / Double(WaveformWindow.pixelLimit - 4)).rounded(.up)
    return Int(max(perColumn / 2, least, 1))
  }
}

extension PictureStyle {
  static let leastLaneHeight = 4
  static let axisHeight = 22
  /// Bars are 3 CSS pixels wide with round ends and gaps of 1.
  static let barWidth = 3.0
  static let barGap = 1.0

  /// Returns the number of data columns across the picture: a PNG's pixels, or bars.
  func columns(width: Int) -> Int {
    switch look {
    case .wave: max(Int((Double(width) * pixelRatio).rounded()), 1)
    case .bars: max(Int((Double(width) + Self.barGap) / (Self.barWidth + Self.barGap)), 1)
    }
  }

  func recordingColor(hasOverlay: Bool) -> PictureColor { color ?? (hasOverlay ? Self.grey : Self.teal) }
  var overlayInk: PictureColor { overlayColor ?? Self.teal }
}

/// The positions of a picture's elements on a canvas.
struct PictureLayout: Equatable {
  struct Lane: Equatable {
    /// The vertical position of zero.
    let middle: Float
    /// The distance from zero to full scale.
    let reach: Float

    func y(_ value: Float) -> Float { middle - value * reach }
  }

  let width, height: Int
  /// Canvas pixels per CSS pixel.
  let unit: Float
  let lanes: [Lane]
  /// The upper edge of the axis, or the height if there is none.
  let axisTop: Float

  /// The thickness in canvas pixels of a line of one CSS pixel.
  var linePixels: Int { max(Int(unit.rounded()), 1) }

  /// Returns the outline of the peaks, at least one CSS pixel high.
  func peakEdges(_ slot: Envelope.Slot, _ lane: Lane) -> (top: Float, bottom: Float) {
    (lane.y(slot.top) - unit / 2, lane.y(slot.bottom) + unit / 2)
  }

  /// Returns the outline of the loudness, within that of the peaks.
  func loudnessEdges(_ slot: Envelope.Slot, _ lane: Lane) -> (top: Float, bottom: Float) {
    let top = max(lane.y(slot.top), lane.y(slot.loudness))
    return (top, max(top, min(lane.y(slot.bottom), lane.y(-slot.loudness))))
  }

  init(_ picture: WaveformPicture, unit: Double) {
    let style = picture.style
    width = max(Int((Double(picture.width) * unit).rounded()), 1)
    height = max(Int((Double(style.height) * unit).rounded()), 1)
    self.unit = Float(unit)
    let bottom = Double(style.height - (style.axis ? PictureStyle.axisHeight : 0)) * unit
    axisTop = Float(bottom)
    let count = Double(picture.lanes)
    let gap = (bottom >= 24 * count * unit ? 4 : 1) * unit
    let laneHeight = (bottom - gap * (count - 1)) / count
    lanes = (0..<picture.lanes).map { lane in
      let exact = Double(lane) * (laneHeight + gap) + laneHeight / 2
      // Aligned so that a line of one CSS pixel at zero fills whole pixels.
      let middle = (exact - unit / 2).rounded(.down) + unit / 2
      let room = min(
        middle - Double(lane) * (laneHeight + gap), Double(lane) * (laneHeight + gap) + laneHeight - middle)
      return Lane(middle: Float(middle), reach: Float(max(room - unit / 2, 0)))
    }
  }
}
