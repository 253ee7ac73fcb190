import Randomness
import Testing

@testable import Waveform

struct CanvasTests {
  private let white = PictureColor.rgb(0xffffff)

  private func greys(_ canvas: Canvas, column x: Int) -> [UInt8] { (0..<canvas.height).map { canvas[x, $0].red } }

  @Test func anEdgeWithinAPixelCoversThatPartOfIt() {
    var canvas = Canvas(width: 2, height: 5, background: white)
    let black = canvas.ink(.rgb(0))
    canvas.cover(from: 1.4, to: 3.2, weight: 1)
    canvas.drawColumn(1, ink: black)
    #expect(greys(canvas, column: 1) == [255, 102, 0, 204, 255])
    #expect(greys(canvas, column: 0) == [255, 255, 255, 255, 255])
  }

  @Test func partsOfAColumnAddUp() {
    var canvas = Canvas(width: 1, height: 4, background: white)
    let black = canvas.ink(.rgb(0))
    for _ in 0..<2 { canvas.cover(from: 0, to: 2, weight: 0.2) }
    canvas.cover(from: 1, to: 4, weight: 0.6)
    canvas.drawColumn(0, ink: black)
    #expect(greys(canvas, column: 0) == [153, 0, 102, 102])
    // No coverage remains for the next column.
    canvas.drawColumn(0, ink: black)
    canvas.cover(from: -7, to: 0.2, weight: 1)
    canvas.drawColumn(0, ink: black)
    #expect(greys(canvas, column: 0) == [122, 0, 102, 102])
  }

  @Test func whatLiesOutsideIsCut() {
    var canvas = Canvas(width: 3, height: 3, background: white)
    let black = canvas.ink(.rgb(0))
    canvas.cover(from: -9, to: 9, weight: 1)
    canvas.drawColumn(0, ink: black)
    canvas.cover(from: 5, to: 9, weight: 1)
    canvas.cover(from: 2, to: 1, weight: 1)
    canvas.drawColumn(1, ink: black)
    canvas.fill(2..<9, -5..<1, ink: black)
    canvas.stroke([PicturePoint(x: -50, y: -50), PicturePoint(x: -20, y: 80)], width: 3, ink: black)
    canvas.stroke([PicturePoint(x: 1e20, y: 0), PicturePoint(x: -1e20, y: -1e20)], width: 3, ink: black)
    canvas.stroke([], width: 3, ink: black)
    #expect(greys(canvas, column: 0) == [0, 0, 0])
    #expect(greys(canvas, column: 1) == [255, 255, 255])
    #expect(greys(canvas, column: 2) == [0, 255, 255])
  }

  @Test func aLineHasRoundEndsAndIsBlendedOnceAtItsCrossings() {
    var canvas = Canvas(width: 20, height: 20, background: white)
    let grey = canvas.ink(PictureColor.rgb(0).opacity(0.5))
    let cross = [PicturePoint(x: 4, y: 10), PicturePoint(x: 16, y: 10), PicturePoint(x: 10, y: 10)]
    canvas.stroke(cross + [PicturePoint(x: 10, y: 4)], width: 2, ink: grey)
    let once = canvas[10, 10]
    #expect(once.red == 127 && canvas[13, 9] == once && canvas[13, 10] == once && canvas[9, 6] == once)
    #expect(canvas[13, 8] == white && canvas[13, 11] == white && canvas[1, 10] == white)
    var dot = Canvas(width: 9, height: 9, background: white)
    dot.stroke([PicturePoint(x: 4.5, y: 4.5)], width: 5, ink: dot.ink(.rgb(0)))
    #expect(dot[4, 4].red == 0 && dot[4, 2].red < 10 && dot[2, 2].red > 200 && dot[4, 1] == white)
  }

  @Test func whenColorsRunOutTheNearestIsUsed() throws {
    // Two recordings in two translucent shades each, over a translucent background, in every combination: more than 256
    // colors.
    var canvas = Canvas(width: 400, height: 30, background: white.opacity(0.3))
    let colors = [PictureStyle.grey, PictureStyle.teal].flatMap { [$0.opacity(0.25), $0.opacity(0.5)] }
    let inks = colors.map { canvas.ink($0) }
    var generator = SeededGenerator(state: 5)
    var worst = 0
    for x in 0..<400 {
      var expected = Array(repeating: white.opacity(0.3), count: 30)
      for (ink, color) in zip(inks, colors) {
        for y in 0..<30 {
          let coverage = Float(generator.next() % 16) / 15
          canvas.cover(from: Float(y), to: Float(y) + coverage, weight: 1)
          expected[y] = color.over(expected[y], coverage: Double(coverage))
        }
        canvas.drawColumn(x, ink: ink)
      }
      for y in 0..<30 { worst = max(worst, canvas[x, y].distance(to: expected[y])) }
    }
    #expect(canvas.palette.count == 256 && worst < 20 * 20, "\(worst)")
    let image = try #require(PNGImage(try PNGEncoder.encode(canvas)))
    for x in 0..<400 { #expect(image[x, 3] == canvas[x, 3]) }
  }

  @Test("a PNG contains the canvas, whatever its size", arguments: [(1, 1), (7, 3), (300, 1), (1, 300), (20_000, 2)])
  func sizes(width: Int, height: Int) throws {
    var canvas = Canvas(width: width, height: height, background: PictureColor.rgb(0x336699).opacity(0.5))
    canvas.fill(0..<1, 0..<1, ink: canvas.ink(.rgb(0xff0000)))
    let image = try #require(PNGImage(try PNGEncoder.encode(canvas)))
    #expect(image.width == width && image.height == height)
    #expect(image[0, 0] == .rgb(0xff0000) && image[width - 1, height - 1] == canvas[width - 1, height - 1])
  }

  @Test func aColumnOfManyPartsIsTheSumOfEach() {
    var random = TestRandom(for: 7)
    for _ in 0..<200 {
      var canvas = Canvas(width: 1, height: 40, background: white)
      let black = canvas.ink(.rgb(0))
      canvas.fill(0..<1, 10..<20, ink: canvas.ink(.rgb(0x808080)))
      let below = greys(canvas, column: 0).map(Double.init)
      let parts = (0..<4).map { _ in
        let ends = (0..<2).map { _ in Float.random(in: -5...45, using: &random) }.sorted()
        return (top: ends[0], bottom: ends[1])
      }
      for part in parts { canvas.cover(from: part.top, to: part.bottom, weight: 0.25) }
      canvas.drawColumn(0, ink: black)
      for (y, grey) in greys(canvas, column: 0).enumerated() {
        let covered = parts.reduce(0.0) { sum, part in
          sum + 0.25 * Double(max(0, min(part.bottom, Float(y + 1)) - max(part.top, Float(y))))
        }
        // A step of coverage is 17, half a step is lost to rounding.
        #expect(abs(Double(grey) - below[y] * (1 - covered)) <= 10, "row \(y) of \(parts)")
      }
    }
  }

  @Test func anIncompressiblePictureFitsItsFile() throws {
    var canvas = Canvas(width: 500, height: 400, background: white)
    var generator = SeededGenerator(state: 3)
    let inks = (0..<200).map { canvas.ink(.rgb(UInt32($0 * 65_793))) }
    for y in 0..<400 {
      for x in 0..<500 { canvas.fill(x..<x + 1, y..<y + 1, ink: inks[Int(generator.next() % 200)]) }
    }
    let image = try #require(PNGImage(try PNGEncoder.encode(canvas)))
    #expect((0..<400).allSatisfy { image[$0, $0] == canvas[$0, $0] })
  }
}
