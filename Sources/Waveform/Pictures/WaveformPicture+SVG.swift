// The picture as SVG 1.1: one path for each lane and shade, in tenths of a CSS pixel. Outlines run along the tops from
// left to right and back along the bottoms, in relative steps from column to column, so that each number is short.

extension WaveformPicture {
  /// Returns the picture as an SVG document, without scripts, styles, or references. O(columns).
  package func svg(_ slice: WaveformSlice, overlay slice2: WaveformSlice? = nil) -> [UInt8] {
    let layout = layout(unit: 1)
    let factor = amplitudeFactor(slice, slice2)
    var text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"\(width)\" height=\"\(style.height)\""
      + " viewBox=\"0 0 \(width) \(style.height)\">"
    if style.background.alpha > 0 {
      text += "<rect width=\"100%\" height=\"100%\"\(Self.paint("fill", style.background))/>"
    }
    if recording.isLine {
      var pen = PathText()
      for lane in layout.lanes {
        pen.move(0, lane.middle)
        pen.line(Float(width), lane.middle)
      }
      Self.path(pen.text, " fill=\"none\"\(Self.paint("stroke", style.axisColor.opacity(0.5)))", to: &text)
    }
    draw(recording, slice, style.recordingColor(hasOverlay: overlay != nil), factor, layout, to: &text)
    if let overlay, let slice2 { draw(overlay, slice2, style.overlayInk, factor, layout, to: &text) }
    if style.axis { drawAxis(layout, to: &text) }
    text += "</svg>\n"
    return Array(text.utf8)
  }

  private func draw(
    _ layer: PictureLayer, _ slice: WaveformSlice, _ color: PictureColor, _ factor: Float,
    _ layout: PictureLayout, to text: inout String
  ) {
    guard layer.frames > 0 else { return }
    let light = Self.paint("fill", color.opacity(PictureStyle.peakOpacity))
    for (number, lane) in layout.lanes.enumerated() {
      if layer.isLine {
        let points = samplePoints(of: layer, slice, number, lane, factor, width: Float(layout.width))
        drawLine(points, color, hasDots: Double(layout.width) >= 5 * layer.frames, to: &text)
        continue
      }
      let envelope = envelope(of: layer, slice, number, factor)
      let full = Self.paint("fill", color)
      switch style.look {
      case .wave:
        Self.path(wave(envelope, lane, layout, .peaks), layer.hasLoudness ? light : full, to: &text)
        if layer.hasLoudness { Self.path(wave(envelope, lane, layout, .loudness), full, to: &text) }
      case .bars:
        Self.path(bars(envelope.tops[envelope.shown], lane), layer.hasLoudness ? light : full, to: &text)
        if layer.hasLoudness { Self.path(bars(envelope.loudness[envelope.shown], lane), full, to: &text) }
      }
    }
  }

  private static func path(_ data: String, _ attributes: String, to text: inout String) {
    if !data.isEmpty { text += "<path d=\"\(data)\"\(attributes)/>" }
  }

  private func drawLine(_ points: [PicturePoint], _ color: PictureColor, hasDots: Bool, to text: inout String) {
    guard !points.isEmpty else { return }
    var pen = PathText()
    pen.move(points[0].x, points[0].y)
    for point in points.dropFirst() { pen.line(point.x, point.y) }
    let stroke = " fill=\"none\"\(Self.paint("stroke", color)) stroke-linejoin=\"round\" stroke-linecap=\"round\""
    // A single point without a line isn't drawn, so add one of length zero.
    if points.count == 1 { pen.line(points[0].x, points[0].y) }
    Self.path(pen.text, "\(stroke) stroke-width=\"1.5\"", to: &text)
    guard hasDots else { return }
    var dots = PathText()
    for point in points {
      dots.move(point.x, point.y)
      dots.line(point.x, point.y)
    }
    Self.path(dots.text, "\(stroke) stroke-width=\"5\"", to: &text)
  }

  private enum Shade { case peaks, loudness }

  private func wave(_ envelope: Envelope, _ lane: PictureLayout.Lane, _ layout: PictureLayout, _ shade: Shade)
    -> String
  {
    var pen = PathText()
    let columnWidth = Float(width) / Float(envelope.shown.count)
    func x(_ column: Int, _ part: Float) -> Float {
      (Float(column - envelope.shown.lowerBound) + part) * columnWidth
    }
    func edges(_ column: Int) -> (top: Float, bottom: Float) {
      let slot = envelope.slot(column, 0, in: column..<column + 1)
      return shade == .peaks ? layout.peakEdges(slot, lane) : layout.loudnessEdges(slot, lane)
    }
    for run in envelope.runs {
      let (left, right) = (x(run.lowerBound, 0), x(run.upperBound, 0))
      pen.move(left, edges(run.lowerBound).top)
      for column in run { pen.line(x(column, 0.5), edges(column).top) }
      pen.line(right, edges(run.upperBound - 1).top)
      pen.line(right, edges(run.upperBound - 1).bottom)
      for column in run.reversed() { pen.line(x(column, 0.5), edges(column).bottom) }
      pen.line(left, edges(run.lowerBound).bottom)
      pen.close()
    }
    return pen.text
  }

  private func bars(_ values: ArraySlice<Float>, _ lane: PictureLayout.Lane) -> String {
    let (width, pitch) = (Float(PictureStyle.barWidth), Float(PictureStyle.barWidth + PictureStyle.barGap))
    var pen = PathText()
    for (bar, value) in values.enumerated() where !value.isNaN {
      let length = max(value * lane.reach + 0.5 - width / 2, 0)
      pen.capsule(x: Float(bar) * pitch, width: width, from: lane.middle - length, to: lane.middle + length)
    }
    return pen.text
  }

  private func drawAxis(_ layout: PictureLayout, to text: inout String) {
    var pen = PathText()
    pen.move(0, layout.axisTop + 0.5)
    pen.line(Float(width), layout.axisTop + 0.5)
    var labels = ""
    for tick in ticks {
      let x = Float(tick.place) * Float(width)
      let left = min(x.rounded(.down), Float(width) - 1) + 0.5
      pen.move(left, layout.axisTop + 1)
      pen.line(left, layout.axisTop + (tick.label == nil ? AxisText.minorTick : AxisText.majorTick))
      guard let label = tick.label else { continue }
      // The viewer's font is at most a fifth wider than ours.
      let half = StrokeFont.width(of: label) * AxisText.digitHeight * 0.6
      let middle = min(max(x, half + 2), Float(width) - half - 2)
      guard middle >= half, abs(middle - x) <= 2 * half else { continue }
      labels +=
        "<text x=\"\(PathText.number(middle))\" y=\"\(PathText.number(layout.axisTop + AxisText.baseline))\">"
        + "\(label)</text>"
    }
    Self.path(pen.text, " fill=\"none\"\(Self.paint("stroke", style.axisColor.opacity(0.5)))", to: &text)
    if !labels.isEmpty {
      text +=
        "<g font-family=\"system-ui,sans-serif\" font-size=\"10\" text-anchor=\"middle\""
        + "\(Self.paint("fill", style.axisColor))>\(labels)</g>"
    }
  }

  private static func paint(_ attribute: String, _ color: PictureColor) -> String {
    let opaque = " \(attribute)=\"#\(color.hexadecimal.dropLast(2))\""
    guard color.alpha < 255 else { return opaque }
    let thousandths = (Int(color.alpha) * 1000 + 127) / 255
    return opaque + " \(attribute)-opacity=\"0.\("\(1000 + thousandths)".dropFirst())\""
  }
}

/// A path's data, written as relative steps in tenths, each from the rounded end of the last one, so errors don't
/// accumulate.
struct PathText {
  private(set) var text = ""
  private var (x, y) = (0, 0)
  private var isLine = false

  mutating func move(_ x: Float, _ y: Float) {
    (self.x, self.y) = (Self.tenths(x), Self.tenths(y))
    text += "M\(Self.number(tenths: self.x))"
    append(self.y)
    isLine = false
  }

  mutating func line(_ x: Float, _ y: Float) {
    let (newX, newY) = (Self.tenths(x), Self.tenths(y))
    if isLine {
      append(newX - self.x)
    } else {
      text += "l\(Self.number(tenths: newX - self.x))"
      isLine = true
    }
    append(newY - self.y)
    (self.x, self.y) = (newX, newY)
  }

  mutating func close() {
    text += "z"
    isLine = false
  }

  /// Draws an upright bar whose round ends have their centers at `from` and `to`.
  mutating func capsule(x: Float, width: Float, from: Float, to: Float) {
    move(x, from)
    let (radius, length) = (Self.number(width / 2), Self.number(tenths: Self.tenths(to) - self.y))
    text += "a\(radius) \(radius) 0 0 1 \(Self.number(width)) 0v\(length)"
    text += "a\(radius) \(radius) 0 0 1 -\(Self.number(width)) 0z"
  }

  /// Appends a number; a minus sign separates numbers as well as a space.
  private mutating func append(_ tenths: Int) {
    if tenths >= 0 { text += " " }
    text += Self.number(tenths: tenths)
  }

  private static func tenths(_ value: Float) -> Int { Int((value * 10).rounded()) }

  static func number(_ value: Float) -> String { number(tenths: tenths(value)) }

  private static func number(tenths: Int) -> String {
    let (whole, rest) = Int(tenths.magnitude).quotientAndRemainder(dividingBy: 10)
    return (tenths < 0 ? "-" : "") + (whole == 0 && rest > 0 ? "" : "\(whole)") + (rest == 0 ? "" : ".\(rest)")
  }
}
