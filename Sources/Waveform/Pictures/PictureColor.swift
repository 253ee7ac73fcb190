import Terms

/// A color with opacity, in sRGB, not premultiplied.
package struct PictureColor: Sendable, Hashable {
  /// 0 … 255.
  package var red, green, blue: UInt8
  /// 0 is transparent; 255 is opaque.
  package var alpha: UInt8

  /// Creates a color from its components.
  package init(red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8 = 255) {
    (self.red, self.green, self.blue, self.alpha) = (red, green, blue, alpha)
  }

  /// Parses CSS's `#rgb`, `#rgba`, `#rrggbb`, and `#rrggbbaa`, or one of `names`, in any case.
  ///
  /// The `#` is optional, because in a URL it begins the fragment unless it is escaped, which is easily forgotten.
  package init?(_ text: String) {
    let text = text.lowercased()
    if let named = Self.named[text] {
      self = named
      return
    }
    var digits: [UInt8] = []
    for byte in text.hasPrefix("#") ? text.dropFirst().utf8 : text[...].utf8 {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digits.append(byte - UInt8(ascii: "0"))
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digits.append(byte - UInt8(ascii: "a") + 10)
      default: return nil
      }
    }
    switch digits.count {
    case 3, 4: digits = digits.flatMap { [$0, $0] }
    case 6, 8: break
    default: return nil
    }
    let values = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    self.init(red: values[0], green: values[1], blue: values[2], alpha: values.count == 4 ? values[3] : 255)
  }

  /// The supported names, sorted: CSS's first sixteen, `orange`, and `transparent`.
  package static let names = named.keys.sorted()

  private static let named: [String: PictureColor] = [
    "aqua": rgb(0x00ffff), "black": rgb(0x000000), "blue": rgb(0x0000ff), "fuchsia": rgb(0xff00ff),
    "gray": rgb(0x808080), "green": rgb(0x008000), "lime": rgb(0x00ff00), "maroon": rgb(0x800000),
    "navy": rgb(0x000080), "olive": rgb(0x808000), "orange": rgb(0xffa500), "purple": rgb(0x800080),
    "red": rgb(0xff0000), "silver": rgb(0xc0c0c0), "teal": rgb(0x008080), "white": rgb(0xffffff),
    "yellow": rgb(0xffff00), "transparent": PictureColor(red: 0, green: 0, blue: 0, alpha: 0),
  ]

  static func rgb(_ value: UInt32) -> PictureColor {
    PictureColor(
      red: UInt8(truncatingIfNeeded: value >> 16), green: UInt8(truncatingIfNeeded: value >> 8),
      blue: UInt8(truncatingIfNeeded: value))
  }

  /// Returns the same color with its opacity multiplied by `factor`.
  func opacity(_ factor: Double) -> PictureColor {
    var color = self
    color.alpha = UInt8((Double(alpha) * factor).rounded())
    return color
  }

  /// Returns this color at `coverage` (0 … 1) over another: source-over (Porter and Duff 1984).
  func over(_ below: PictureColor, coverage: Double) -> PictureColor {
    let top = Double(alpha) / 255 * coverage
    let rest = Double(below.alpha) / 255 * (1 - top)
    let sum = top + rest
    guard sum > 0 else { return below }
    func mix(_ above: UInt8, _ below: UInt8) -> UInt8 {
      UInt8(((Double(above) * top + Double(below) * rest) / sum).rounded())
    }
    return PictureColor(
      red: mix(red, below.red), green: mix(green, below.green), blue: mix(blue, below.blue),
      alpha: UInt8((sum * 255).rounded()))
  }

  /// The color as `rrggbbaa`, a single word for signatures and files.
  var hexadecimal: String { Hexadecimal.text([red, green, blue, alpha]) }

  /// Returns an upper bound of the visible difference of two colors on any background.
  func distance(to other: PictureColor) -> Int {
    func part(_ value: UInt8, _ alpha: UInt8) -> Int { Int(value) * Int(alpha) / 255 }
    func square(_ a: UInt8, _ b: UInt8) -> Int {
      let difference = part(a, alpha) - part(b, other.alpha)
      return difference * difference
    }
    let transparency = Int(alpha) - Int(other.alpha)
    return square(red, other.red) + square(green, other.green) + square(blue, other.blue)
      + transparency * transparency
  }
}
