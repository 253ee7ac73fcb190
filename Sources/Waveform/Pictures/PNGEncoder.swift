import CPNG

/// Writes canvases as PNG files with a palette (PNG Specification, color type 3, with tRNS if there is transparency).
enum PNGEncoder {
  /// Returns the PNG file. Throws `.pictureNotEncoded` if libpng fails, which happens only if memory runs out.
  static func encode(_ canvas: borrowing Canvas) throws(WaveformError) -> [UInt8] {
    try encode(canvas.pixels, width: canvas.width, height: canvas.height, canvas.palette)
  }

  /// Returns the PNG file of pixels that are numbers of colors.
  static func encode(
    _ pixels: [UInt8], width: Int, height: Int, _ palette: [PictureColor]
  ) throws(WaveformError) -> [UInt8] {
    let colors = palette.map { png_color(red: $0.red, green: $0.green, blue: $0.blue) }
    let opacities = palette.map(\.alpha)
    let transparent = opacities.lastIndex { $0 < 255 }.map { $0 + 1 } ?? 0
    // Unwritten memory isn't allocated.
    let room = stillwave_png_bound(UInt32(width), UInt32(height))
    let file = unsafe [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
      unsafe pixels.withUnsafeBufferPointer { pixels in
        unsafe colors.withUnsafeBufferPointer { colors in
          unsafe opacities.withUnsafeBufferPointer { opacities in
            var picture = unsafe stillwave_picture(
              width: UInt32(width), height: UInt32(height), pixels: pixels.baseAddress,
              colors: colors.baseAddress, opacities: opacities.baseAddress, color_count: Int32(colors.count),
              opacity_count: Int32(transparent))
            unsafe count = stillwave_write_png(&picture, buffer.baseAddress, buffer.count)
          }
        }
      }
    }
    guard !file.isEmpty else { throw .pictureNotEncoded }
    return file
  }
}
