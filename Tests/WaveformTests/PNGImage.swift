import CPNG

@testable import Waveform

/// A PNG file, decoded by libpng.
struct PNGImage {
  let width, height: Int
  private let bytes: [UInt8]

  /// nil where libpng can't read it.
  init?(_ file: [UInt8]) {
    var image = unsafe png_image()
    unsafe image.version = UInt32(PNG_IMAGE_VERSION)
    var bytes: [UInt8] = []
    // libpng keeps the file's address from the one call to the other.
    let isRead = unsafe file.withUnsafeBytes { file in
      guard unsafe png_image_begin_read_from_memory(&image, file.baseAddress, file.count) != 0 else { return false }
      unsafe image.format = UInt32(PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA)
      bytes = unsafe [UInt8](repeating: 0, count: Int(image.width) * Int(image.height) * 4)
      return unsafe png_image_finish_read(&image, nil, &bytes, 0, nil) != 0
    }
    guard isRead else { return nil }
    (width, height) = unsafe (Int(image.width), Int(image.height))
    self.bytes = bytes
  }

  subscript(x: Int, y: Int) -> PictureColor {
    let index = 4 * (y * width + x)
    return PictureColor(red: bytes[index], green: bytes[index + 1], blue: bytes[index + 2], alpha: bytes[index + 3])
  }

  /// The share of pixels that differ from another picture's by more than `tolerance` (0 … 255) in a visible way.
  func difference(from other: PNGImage, tolerance: Int) -> Double {
    guard width == other.width, height == other.height else { return 1 }
    var count = 0
    for y in 0..<height {
      for x in 0..<width where self[x, y].distance(to: other[x, y]) > tolerance * tolerance { count += 1 }
    }
    return Double(count) / Double(width * height)
  }

  /// Rows of a column that are not `background`; nil where there is none.
  func drawn(_ x: Int, on background: PictureColor) -> ClosedRange<Int>? {
    let rows = (0..<height).filter { self[x, $0].distance(to: background) > 9 }
    guard let first = rows.first, let last = rows.last else { return nil }
    return first...last
  }
}
