// Digits, ':' and '.' as strokes: enough for a time axis at any size, without a font file.
//
// A glyph's box is 0.6 wide and 1 high, with y pointing down and the baseline at 1. Arcs are chains of short lines.

/// A tiny stroke font.
enum StrokeFont {
  private static let gap: Float = 0.24
  private static let digitWidth: Float = 0.56

  /// Returns the width of a line of text with a digit height of 1.
  static func width(of text: String) -> Float {
    text.utf8.reduce(-gap) { $0 + advance($1) }
  }

  /// Returns a text's strokes with a digit height of `size`, starting at the left end of its baseline.
  static func strokes(of text: String, size: Float, at origin: PicturePoint) -> [[PicturePoint]] {
    var strokes: [[PicturePoint]] = []
    var x: Float = 0
    for byte in text.utf8 {
      for stroke in glyph(byte) {
        strokes.append(stroke.map { PicturePoint(x: origin.x + (x + $0.x) * size, y: origin.y + ($0.y - 1) * size) })
      }
      x += advance(byte)
    }
    return strokes
  }

  private static func advance(_ byte: UInt8) -> Float {
    (byte == UInt8(ascii: ":") || byte == UInt8(ascii: ".") ? 0.1 : digitWidth) + gap
  }

  private static func glyph(_ byte: UInt8) -> [[PicturePoint]] {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digits[Int(byte - UInt8(ascii: "0"))]
    case UInt8(ascii: ":"): [line((0.05, 0.36)), line((0.05, 0.9))]
    case UInt8(ascii: "."): [line((0.05, 0.96))]
    default: []
    }
  }

  private static let digits: [[[PicturePoint]]] = [
    [arc(0.28, 0.5, 0.27, 0.5, 0, 360)],
    [line((0.06, 0.2), (0.32, 0), (0.32, 1))],
    [arc(0.28, 0.27, 0.26, 0.27, 190, 395) + line((0.02, 1), (0.56, 1))],
    [arc(0.27, 0.25, 0.23, 0.25, 200, 450), arc(0.27, 0.735, 0.27, 0.265, 270, 515)],
    [line((0.43, 1), (0.43, 0), (0, 0.69), (0.57, 0.69))],
    [line((0.5, 0), (0.1, 0), (0.05, 0.44)) + arc(0.27, 0.67, 0.28, 0.33, 220, 510)],
    [arc(0.28, 0.67, 0.27, 0.33, 0, 360), arc(0.56, 0.66, 0.55, 0.66, 180, 262)],
    [line((0.01, 0), (0.55, 0), (0.2, 1))],
    [arc(0.28, 0.245, 0.225, 0.245, 0, 360), arc(0.28, 0.74, 0.27, 0.26, 0, 360)],
    [arc(0.28, 0.33, 0.27, 0.33, 0, 360), arc(0, 0.34, 0.55, 0.66, 0, 82)],
  ]

  private static func line(_ points: (Float, Float)...) -> [PicturePoint] {
    points.map { PicturePoint(x: $0.0, y: $0.1) }
  }

  /// Returns a part of an ellipse; degrees run clockwise from the right.
  private static func arc(
    _ x: Float, _ y: Float, _ rx: Float, _ ry: Float, _ from: Float, _ to: Float
  ) -> [PicturePoint] {
    let count = Int((to - from) / 15) + 1
    return (0...count).map { index in
      let degrees = from + (to - from) * Float(index) / Float(count)
      let (sine, cosine) = sineCosine(degrees)
      return PicturePoint(x: x + rx * cosine, y: y + ry * sine)
    }
  }

  /// Returns sine and cosine by Bhaskara's approximation, accurate to 0.002: a hundredth of a pixel here, and without a
  /// math library.
  private static func sineCosine(_ degrees: Float) -> (Float, Float) {
    func sine(_ degrees: Float) -> Float {
      var turned = degrees.truncatingRemainder(dividingBy: 360)
      if turned < 0 { turned += 360 }
      let half = turned >= 180 ? turned - 180 : turned
      let product = half * (180 - half)
      let value = 4 * product / (40_500 - product)
      return turned >= 180 ? -value : value
    }
    return (sine(degrees), sine(degrees + 90))
  }
}
