extension WaveformPicture {
  /// Returns the picture as a PNG of `width · pixelRatio` by `height · pixelRatio` pixels, in sRGB with opacity and a
  /// palette.
  ///
  /// Pass the slices of `window` and `overlayWindow`. Throws `.pictureNotEncoded`. O(pixels); needs one byte per pixel
  /// in addition to the PNG.
  package func png(_ slice: WaveformSlice, overlay slice2: WaveformSlice? = nil) throws(WaveformError) -> [UInt8] {
    try PNGEncoder.encode(canvas(slice, overlay: slice2))
  }

  func canvas(_ slice: WaveformSlice, overlay slice2: WaveformSlice?) -> Canvas {
    let layout = layout(unit: style.pixelRatio)
    let factor = amplitudeFactor(slice, slice2)
    var canvas = Canvas(width: layout.width, height: layout.height, background: style.background)
    // The axis comes first, so that labels get their exact colors even if the rest uses up the palette.
    if style.axis { drawAxis(layout, on: &canvas) }
    if recording.isLine {
      let ink = canvas.ink(style.axisColor.opacity(0.5))
      for lane in layout.lanes {
        let top = Int((lane.middle - layout.unit / 2).rounded())
        canvas.fill(0..<layout.width, top..<top + layout.linePixels, ink: ink)
      }
    }
    let color = style.recordingColor(hasOverlay: overlay != nil)
    draw(recording, slice, color, factor, layout, on: &canvas)
    if let overlay, let slice2 { draw(overlay, slice2, style.overlayInk, factor, layout, on: &canvas) }
    return canvas
  }

  private func draw(
    _ layer: PictureLayer, _ slice: WaveformSlice, _ color: PictureColor, _ factor: Float,
    _ layout: PictureLayout, on canvas: inout Canvas
  ) {
    guard layer.frames > 0 else { return }
    let full = canvas.ink(color)
    let light = canvas.ink(color.opacity(PictureStyle.peakOpacity))
    for (number, lane) in layout.lanes.enumerated() {
      if layer.isLine {
        let points = samplePoints(of: layer, slice, number, lane, factor, width: Float(layout.width))
        canvas.stroke(points, width: 1.5 * layout.unit, ink: full)
        if Double(layout.width) >= 5 * layer.frames * Double(layout.unit) {
          for point in points { canvas.stroke([point], width: 5 * layout.unit, ink: full) }
        }
        continue
      }
      let envelope = envelope(of: layer, slice, number, factor)
      let inks = layer.hasLoudness ? (peaks: light, loudness: full) : (peaks: full, loudness: nil as Int?)
      switch style.look {
      case .wave: drawWave(envelope, lane, layout, inks, on: &canvas)
      case .bars: drawBars(envelope, lane, layout, inks, on: &canvas)
      }
    }
  }

  private func drawWave(
    _ envelope: Envelope, _ lane: PictureLayout.Lane, _ layout: PictureLayout, _ inks: (peaks: Int, loudness: Int?),
    on canvas: inout Canvas
  ) {
    // Edges run from the middle of each column to that of the next; four samples per column approximate the area well
    // enough.
    let places = 4
    func draw(_ column: Int, _ run: Range<Int>, _ ink: Int, _ edges: (Envelope.Slot) -> (top: Float, bottom: Float)) {
      for place in 0..<places {
        let offset = (Float(place) + 0.5) / Float(places) - 0.5
        let (top, bottom) = edges(envelope.slot(column, offset, in: run))
        canvas.cover(from: top, to: bottom, weight: 1 / Float(places))
      }
      canvas.drawColumn(column - envelope.shown.lowerBound, ink: ink)
    }
    for run in envelope.runs {
      for column in run.clamped(to: envelope.shown) {
        draw(column, run, inks.peaks) { layout.peakEdges($0, lane) }
        if let ink = inks.loudness { draw(column, run, ink) { layout.loudnessEdges($0, lane) } }
      }
    }
  }

  private func drawBars(
    _ envelope: Envelope, _ lane: PictureLayout.Lane, _ layout: PictureLayout, _ inks: (peaks: Int, loudness: Int?),
    on canvas: inout Canvas
  ) {
    let width = Float(PictureStyle.barWidth) * layout.unit
    func draw(_ value: Float, _ x: Float, _ ink: Int) {
      // The round ends are part of the bar's length.
      let reach = max(value * lane.reach + layout.unit / 2 - width / 2, 0)
      canvas.stroke(
        [PicturePoint(x: x, y: lane.middle - reach), PicturePoint(x: x, y: lane.middle + reach)], width: width, ink: ink
      )
    }
    for (number, bar) in envelope.shown.enumerated() where !envelope.tops[bar].isNaN {
      let x = Float(number) * Float(PictureStyle.barWidth + PictureStyle.barGap) + Float(PictureStyle.barWidth) / 2
      draw(envelope.tops[bar], x * layout.unit, inks.peaks)
      if let ink = inks.loudness { draw(envelope.loudness[bar], x * layout.unit, ink) }
    }
  }

  private func drawAxis(_ layout: PictureLayout, on canvas: inout Canvas) {
    let (line, text) = (canvas.ink(style.axisColor.opacity(0.5)), canvas.ink(style.axisColor))
    let pixel = layout.linePixels
    let top = Int(layout.axisTop.rounded())
    canvas.fill(0..<layout.width, top..<top + pixel, ink: line)
    let size = AxisText.digitHeight * layout.unit
    for tick in ticks {
      let x = Float(tick.place) * Float(layout.width)
      let left = min(Int(x), layout.width - pixel)
      let length = (tick.label == nil ? AxisText.minorTick : AxisText.majorTick) * layout.unit
      canvas.fill(left..<left + pixel, top + pixel..<top + Int(length.rounded()), ink: line)
      guard let label = tick.label else { continue }
      let width = StrokeFont.width(of: label) * size
      // Labels stay entirely inside the picture; the first and last move inward if they would be cut off.
      let start = min(max(x - width / 2, 2 * layout.unit), Float(layout.width) - width - 2 * layout.unit)
      guard start >= 0, abs(start + width / 2 - x) <= width else { continue }
      let baseline = ((layout.axisTop + AxisText.baseline * layout.unit)).rounded()
      for stroke in StrokeFont.strokes(of: label, size: size, at: PicturePoint(x: start, y: baseline)) {
        canvas.stroke(stroke, width: AxisText.stroke * layout.unit, ink: text)
      }
    }
  }
}

/// The axis's dimensions in CSS pixels, from its upper edge.
enum AxisText {
  static let digitHeight: Float = 7.5
  static let baseline: Float = 18
  static let stroke: Float = 1.05
  static let minorTick: Float = 4
  static let majorTick: Float = 7
}
