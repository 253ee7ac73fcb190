import CPNG

@testable import Waveform

/// A PNG file, decoded by libpng.
struct PNGImage {
  let width, height: Int
  private let bytes: [UInt8]

  /// Fails if libpng can't read the file.
  init?(_ file: [UInt8]) {
    var image = unsafe png_image()
    unsafe image.version = UInt32(PNG_IMAGE_VERSION)
    var bytes: [UInt8] = []
    // libpng keeps the address of the file between the two calls.
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

  /// Returns the share of pixels that differ visibly from another picture's, by more than `tolerance` (0 … 255).
  func difference(from other: PNGImage, tolerance: Int) -> Double {
    guard width == other.width, height == other.height else { return 1 }
    var count = 0
    for y in 0..<height {
      for x in 0..<width where self[x, y].distance(to: other[x, y]) > tolerance * tolerance { count += 1 }
    }
    return Double(count) / Double(width * height)
  }

  /// Returns the rows of a column that differ from `background`, or nil if there are none.
  func drawn(_ x: Int, on background: PictureColor) -> ClosedRange<Int>? {
    let rows = (0..<height).filter { self[x, $0].distance(to: background) > 9 }
    guard let first = rows.first, let last = rows.last else { return nil }
    return first...last
  }
}
