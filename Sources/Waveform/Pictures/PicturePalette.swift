/// The colors of a spectrogram, from the quietest to the loudest.
package enum PicturePalette: String, Sendable, CaseIterable {
  /// Matplotlib's, by Smith and van der Walt (2015, CC0): as light as it looks loud, also in grey.
  case magma, viridis
  case grey

  /// Returns a PNG of values in 256 colors, row by row. A picture without columns gets one of the quietest color.
  ///
  /// Throws `.pictureNotEncoded`.
  package func png(_ values: [UInt8], width: Int, height: Int) throws(WaveformError) -> [UInt8] {
    precondition(values.count == width * height, "a value for each pixel")
    guard width > 0 else { return try png([UInt8](repeating: 0, count: height), width: 1, height: height) }
    return try PNGEncoder.encode(values, width: width, height: height, colors)
  }

  /// The colors of the values 0 … 255. Between every fifteenth they are interpolated, which is at most 5 of 255 away
  /// from the originals.
  var colors: [PictureColor] {
    let anchors = anchors.map { color in [color >> 16, color >> 8 & 255, color & 255] }
    return (0...255).map { value in
      let left = anchors[value / 15], right = anchors[min(value / 15 + 1, anchors.count - 1)], part = value % 15
      func mixed(_ index: Int) -> UInt8 { UInt8((left[index] * (15 - part) + right[index] * part + 7) / 15) }
      return PictureColor(red: mixed(0), green: mixed(1), blue: mixed(2), alpha: 255)
    }
  }

  private var anchors: [Int] {
    switch self {
    case .magma:
      [
        0x000004, 0x090720, 0x1A1042, 0x311165, 0x4A1079, 0x621980, 0x792282, 0x912B81, 0xAA337D, 0xC23B75, 0xD9466B,
        0xEC5860, 0xF7725C, 0xFC8E64, 0xFEAA74, 0xFEC68A, 0xFDE2A3, 0xFCFDBF,
      ]
    case .viridis:
      [
        0x440154, 0x481769, 0x472A7A, 0x433D84, 0x3D4E8A, 0x355E8D, 0x2E6D8E, 0x297B8E, 0x23898E, 0x1F978B, 0x21A585,
        0x2EB37C, 0x46C06F, 0x65CB5E, 0x89D548, 0xB0DD2F, 0xD8E219, 0xFDE725,
      ]
    case .grey: (0...17).map { $0 * 0x0F0F0F }
    }
  }
}
