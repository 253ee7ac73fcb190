// A picture of one byte a pixel, with a palette that grows as it is drawn.
//
// A pixel holds the number of its colour. Drawing an ink with some coverage over a colour gives another colour; which
// one is looked up in a table, [ink][coverage][colour below], and worked out only the first time. So a pixel costs a
// load and a store, a picture a quarter of its RGBA, and the PNG has a palette: smaller, and faster to write.
//
// Coverage has 16 steps, 0 … 15: what edges need to look smooth. Should 256 colours not suffice (many translucent inks
// over each other), the nearest takes the place of a 257th.

/// How much of a pixel is covered, in fifteenths.
private let fullCoverage = 15

struct Canvas {
  let width: Int
  let height: Int
  /// Rows of palette numbers.
  private(set) var pixels: [UInt8]
  private var blends: BlendTable
  var palette: [PictureColor] { blends.palette }

  /// One column's coverage while it is drawn: `changes[y]` is how much coverage row y has more than row y − 1.
  private var changes: [Float]
  private var touched: Range<Int>

  init(width: Int, height: Int, background: PictureColor) {
    (self.width, self.height) = (width, height)
    pixels = Array(repeating: 0, count: width * height)
    blends = BlendTable(background: background)
    changes = Array(repeating: 0, count: height + 2)
    touched = 0..<0
  }

  /// A colour to draw with.
  mutating func ink(_ color: PictureColor) -> Int { blends.add(color) }

  subscript(x: Int, y: Int) -> PictureColor { palette[Int(pixels[y * width + x])] }

  // MARK: Columns

  /// Adds `weight` (a part of the column's width) from `top` to `bottom` to the column that is drawn next.
  mutating func cover(from top: Float, to bottom: Float, weight: Float) {
    let top = max(top, 0)
    let bottom = min(bottom, Float(height))
    guard top < bottom else { return }
    // Coverage of a half-plane below y: a ramp over one row, so its derivative has two entries.
    let (first, last) = (Int(top), Int(bottom))
    let (above, below) = (top - Float(first), bottom - Float(last))
    changes[first] += weight * (1 - above)
    changes[first + 1] += weight * above
    changes[last] -= weight * (1 - below)
    changes[last + 1] -= weight * below
    let rows = first..<min(last + 1, height)
    touched =
      touched.isEmpty ? rows : min(touched.lowerBound, rows.lowerBound)..<max(touched.upperBound, rows.upperBound)
  }

  /// Draws what has been covered in column `x`, and forgets it.
  mutating func drawColumn(_ x: Int, ink: Int) {
    Self.draw(touched, of: &changes, ink, with: &blends, on: &pixels, from: touched.lowerBound * width + x, step: width)
    if !touched.isEmpty {
      changes[touched.upperBound] = 0
      changes[min(touched.upperBound + 1, height + 1)] = 0
    }
    touched = 0..<0
  }

  /// Parts of the canvas, each by itself, so that none of them is asked at every pixel whether it is shared.
  private static func draw(
    _ rows: Range<Int>, of changes: inout [Float], _ ink: Int, with blends: inout BlendTable, on pixels: inout [UInt8],
    from first: Int, step: Int
  ) {
    var sum: Float = 0
    var index = first
    var changes = changes.mutableSpan
    var pixels = pixels.mutableSpan
    for row in rows {
      sum += changes[row]
      changes[row] = 0
      let coverage = Int(min(max(sum, 0), 1) * Float(fullCoverage) + 0.5)
      pixels[index] = blends.blend(ink, over: pixels[index], coverage: coverage)
      index += step
    }
  }

  /// Fills whole pixels, cut to the canvas.
  mutating func fill(_ columns: Range<Int>, _ rows: Range<Int>, ink: Int) {
    for y in rows.clamped(to: 0..<height) {
      for x in columns.clamped(to: 0..<width) { blend(y * width + x, ink, fullCoverage) }
    }
  }

  // MARK: Lines

  /// Draws lines of one width with round ends, each from a point to the next; where they meet or cross nothing is drawn
  /// twice. A single point is a dot.
  mutating func stroke(_ points: [PicturePoint], width lineWidth: Float, ink: Int) {
    let reach = lineWidth / 2 + 1
    let xs = points.map(\.x)
    let ys = points.map(\.y)
    guard let left = xs.min(), let right = xs.max(), let top = ys.min(), let bottom = ys.max() else { return }
    let columns = Self.whole(left - reach, right + reach).clamped(to: 0..<width)
    let rows = Self.whole(top - reach, bottom + reach).clamped(to: 0..<height)
    guard !columns.isEmpty, !rows.isEmpty else { return }
    var mask = [UInt8](repeating: 0, count: columns.count * rows.count)
    for index in points.indices.dropLast(points.count > 1 ? 1 : 0) {
      Self.cover(
        from: points[index], to: points[min(index + 1, points.count - 1)], width: lineWidth, columns, rows, &mask)
    }
    for (row, y) in rows.enumerated() {
      for (column, x) in columns.enumerated() {
        let coverage = mask[row * columns.count + column]
        if coverage > 0 { blend(y * width + x, ink, Int(coverage)) }
      }
    }
  }

  /// A pixel's coverage is how far its centre is within the line's edge, from half a pixel outside to half inside.
  private static func cover(
    from a: PicturePoint, to b: PicturePoint, width: Float, _ columns: Range<Int>, _ rows: Range<Int>,
    _ mask: inout [UInt8]
  ) {
    let reach = width / 2 + 1
    let (dx, dy) = (b.x - a.x, b.y - a.y)
    let square = dx * dx + dy * dy
    for x in whole(min(a.x, b.x) - reach, max(a.x, b.x) + reach).clamped(to: columns) {
      // The line's part near this column: a long steep line must not cost its whole bounding box in every column.
      let here = Float(x) + 0.5
      let near = dx == 0 ? a.y : a.y + min(max((here - reach - a.x) / dx, 0), 1) * dy
      let far = dx == 0 ? b.y : a.y + min(max((here + reach - a.x) / dx, 0), 1) * dy
      for y in whole(min(near, far) - reach, max(near, far) + reach).clamped(to: rows) {
        let (px, py) = (here - a.x, Float(y) + 0.5 - a.y)
        let along = square == 0 ? 0 : min(max((px * dx + py * dy) / square, 0), 1)
        let (ox, oy) = (px - along * dx, py - along * dy)
        let inside = width / 2 + 0.5 - (ox * ox + oy * oy).squareRoot()
        guard inside > 0 else { continue }
        let index = (y - rows.lowerBound) * columns.count + x - columns.lowerBound
        mask[index] = max(mask[index], UInt8(min(inside, 1) * Float(fullCoverage) + 0.5))
      }
    }
  }

  private static func whole(_ from: Float, _ to: Float) -> Range<Int> {
    let limit: Float = 16_777_216
    let first = Int(max(-limit, min(from, limit)).rounded(.down))
    return first..<max(first, Int(max(-limit, min(to, limit)).rounded(.up)))
  }

  @inline(__always)
  private mutating func blend(_ pixel: Int, _ ink: Int, _ coverage: Int) {
    pixels[pixel] = blends.blend(ink, over: pixels[pixel], coverage: coverage)
  }
}

/// The palette, and which of its colours an ink makes of which.
private struct BlendTable {
  private(set) var palette: [PictureColor]
  private var inks: [PictureColor] = []
  private var known: [UInt16] = []
  private static let unknown = UInt16.max
  /// When half of the palette is used, colours as near as 4 of 255 steps are one, which can't be seen at an edge: that
  /// leaves room for those that differ.
  private static let indistinct = 16

  init(background: PictureColor) { palette = [background] }

  mutating func add(_ ink: PictureColor) -> Int {
    inks.append(ink)
    known.append(contentsOf: repeatElement(Self.unknown, count: (fullCoverage + 1) * 256))
    return inks.count - 1
  }

  @inline(__always)
  mutating func blend(_ ink: Int, over below: UInt8, coverage: Int) -> UInt8 {
    let entry = (ink * (fullCoverage + 1) + coverage) * 256 + Int(below)
    let number = known[entry]
    return number == Self.unknown ? newBlend(entry, ink, coverage, below) : UInt8(truncatingIfNeeded: number)
  }

  @inline(never)
  private mutating func newBlend(_ entry: Int, _ ink: Int, _ coverage: Int, _ below: UInt8) -> UInt8 {
    let color = inks[ink].over(palette[Int(below)], coverage: Double(coverage) / Double(fullCoverage))
    var number = palette.indices.min { palette[$0].distance(to: color) < palette[$1].distance(to: color) } ?? 0
    let nearEnough = palette.count < 128 ? 0 : Self.indistinct
    if palette[number].distance(to: color) > nearEnough, palette.count < 256 {
      palette.append(color)
      number = palette.count - 1
    }
    known[entry] = UInt16(number)
    return UInt8(number)
  }
}

/// A place on a canvas, in its own pixels, from the upper left corner; pixel centres are at halves.
struct PicturePoint: Equatable, Sendable {
  var x, y: Float
}
