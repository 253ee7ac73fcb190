// A picture with one byte per pixel and a palette that grows during drawing.
//
// A pixel contains the index of its color. Drawing an ink with some coverage over a color yields another color; its
// index is looked up in a table, [ink][coverage][color below], and computed only the first time. So a pixel costs one
// load and one store, a picture takes a quarter of the memory of RGBA, and the PNG has a palette, which makes it
// smaller and faster to write.
//
// Coverage has 16 steps, 0 … 15, enough for smooth edges. If 256 colors aren't enough (many translucent inks over one
// another), the nearest color replaces a 257th.

/// Coverage of a whole pixel, in fifteenths.
private let fullCoverage = 15

struct Canvas {
  let width: Int
  let height: Int
  /// Rows of palette indices.
  private(set) var pixels: [UInt8]
  private var blends: BlendTable
  var palette: [PictureColor] { blends.palette }

  /// The coverage of the column being drawn, as differences: `changes[y]` is the coverage of row y minus that of row y
  /// − 1.
  private var changes: [Float]
  private var touched: Range<Int>
  /// Rows whose coverage equals that of the row above.
  private var steady: Range<Int>

  init(width: Int, height: Int, background: PictureColor) {
    (self.width, self.height) = (width, height)
    pixels = Array(repeating: 0, count: width * height)
    blends = BlendTable(background: background)
    changes = Array(repeating: 0, count: height + 2)
    touched = 0..<0
    steady = 0..<height
  }

  /// Adds a color to draw with and returns its number.
  mutating func ink(_ color: PictureColor) -> Int { blends.add(color) }

  subscript(x: Int, y: Int) -> PictureColor { palette[Int(pixels[y * width + x])] }

  // MARK: Columns

  /// Covers `weight` (a fraction of the column's width) from `top` to `bottom` in the next column to be drawn.
  mutating func cover(from top: Float, to bottom: Float, weight: Float) {
    let top = max(top, 0)
    let bottom = min(bottom, Float(height))
    guard top < bottom else { return }
    // The coverage by a half-plane is a ramp over one row, so its derivative has two entries.
    let (first, last) = (Int(top), Int(bottom))
    let (above, below) = (top - Float(first), bottom - Float(last))
    changes[first] += weight * (1 - above)
    changes[first + 1] += weight * above
    changes[last] -= weight * (1 - below)
    changes[last + 1] -= weight * below
    let rows = first..<min(last + 1, height)
    let between = first + 2..<max(first + 2, last)
    steady = steady.clamped(to: between)
    touched =
      touched.isEmpty ? rows : min(touched.lowerBound, rows.lowerBound)..<max(touched.upperBound, rows.upperBound)
  }

  /// Draws the accumulated coverage in column `x` and resets it.
  mutating func drawColumn(_ x: Int, ink: Int) {
    let first = touched.lowerBound * width + x
    Self.draw(touched, steady, of: &changes, ink, with: &blends, on: &pixels, from: first, step: width)
    if !touched.isEmpty {
      changes[touched.upperBound] = 0
      changes[min(touched.upperBound + 1, height + 1)] = 0
    }
    touched = 0..<0
    steady = 0..<height
  }

  /// Takes parts of the canvas as separate parameters, to avoid a uniqueness check for every pixel.
  private static func draw(
    _ rows: Range<Int>, _ steady: Range<Int>, of changes: inout [Float], _ ink: Int, with blends: inout BlendTable,
    on pixels: inout [UInt8], from first: Int, step: Int
  ) {
    var sum: Float = 0
    var index = first
    var row = rows.lowerBound
    var changes = changes.mutableSpan
    var pixels = pixels.mutableSpan
    while row < rows.upperBound {
      sum += changes[row]
      changes[row] = 0
      let coverage = Int(min(max(sum, 0), 1) * Float(fullCoverage) + 0.5)
      // The rows that follow have the same coverage, and mostly the same color below.
      let end = row + 1 == steady.lowerBound ? max(min(steady.upperBound, rows.upperBound), row + 1) : row + 1
      var (below, result) = (pixels[index], blends.blend(ink, over: pixels[index], coverage: coverage))
      while row < end {
        if pixels[index] != below {
          below = pixels[index]
          result = blends.blend(ink, over: below, coverage: coverage)
        }
        pixels[index] = result
        index &+= step
        row &+= 1
      }
    }
  }

  /// Fills whole pixels, clipped to the canvas.
  mutating func fill(_ columns: Range<Int>, _ rows: Range<Int>, ink: Int) {
    for y in rows.clamped(to: 0..<height) {
      for x in columns.clamped(to: 0..<width) { blend(y * width + x, ink, fullCoverage) }
    }
  }

  // MARK: Lines

  /// Draws lines of one width with round ends, each from a point to the next. Pixels where they meet or cross are drawn
  /// once. A single point is a dot.
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

  /// A pixel's coverage is the distance of its center from the line's edge, from half a pixel outside to half a pixel
  /// inside.
  private static func cover(
    from a: PicturePoint, to b: PicturePoint, width: Float, _ columns: Range<Int>, _ rows: Range<Int>,
    _ mask: inout [UInt8]
  ) {
    let reach = width / 2 + 1
    let (dx, dy) = (b.x - a.x, b.y - a.y)
    let square = dx * dx + dy * dy
    for x in whole(min(a.x, b.x) - reach, max(a.x, b.x) + reach).clamped(to: columns) {
      // Only the part of the line near this column: a long steep line must not cost its whole bounding box in every
      // column.
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

/// The palette, and the color that each ink yields over each of its colors.
private struct BlendTable {
  private(set) var palette: [PictureColor]
  private var inks: [PictureColor] = []
  private var known: [UInt16] = []
  private static let unknown = UInt16.max
  /// Once half of the palette is used, colors at most 4 of 255 steps apart are merged, to leave room for distinct ones.
  /// The difference is invisible at an edge.
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

/// A position on a canvas, in its pixels, from the upper left corner. Pixel centers are at halves.
struct PicturePoint: Equatable, Sendable {
  var x, y: Float
}
