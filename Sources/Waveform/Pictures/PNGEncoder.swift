// A PNG file (Portable Network Graphics, third edition) with a palette:
//
//   signature   137 "PNG" 13 10 26 10
//   chunks      length of the content, name of four letters, content, CRC-32 of name and content; numbers are
//               big-endian
//     IHDR      width, height; 8 bits per pixel, color type 3 (palette), compression 0, filters 0, no interlace
//     sRGB      0: perceptual
//     PLTE      red, green, blue of each color
//     tRNS      opacity of each color; omitted if all are opaque
//     IDAT      zlib stream: for each row 2 (filter Up) and each byte minus the one above it
//     IEND      empty
//
// Waveforms are vertical: nearly every pixel equals the one above it, so the filter leaves long runs of zeros. For these
// zlib's run-length strategy is as good as its search for repetitions, and several times as fast. Contains the unsafe
// use of zlib.

import CZlib

/// Writes canvases as PNG files.
@safe
enum PNGEncoder {
  /// Returns the PNG file. Throws `.pictureNotEncoded` if zlib fails, which happens only if memory runs out.
  static func encode(_ canvas: borrowing Canvas) throws(WaveformError) -> [UInt8] {
    let colors = canvas.palette
    let content = try compressed(filtered(canvas))
    var file: [UInt8] = [137, 80, 78, 71, 13, 10, 26, 10]
    file.reserveCapacity(content.count + 2048)
    append("IHDR", bytes(UInt32(canvas.width)) + bytes(UInt32(canvas.height)) + [8, 3, 0, 0, 0], to: &file)
    append("sRGB", [0], to: &file)
    append("PLTE", colors.flatMap { [$0.red, $0.green, $0.blue] }, to: &file)
    if colors.contains(where: { $0.alpha < 255 }) { append("tRNS", colors.map(\.alpha), to: &file) }
    append("IDAT", content, to: &file)
    append("IEND", [], to: &file)
    return file
  }

  private static func filtered(_ canvas: borrowing Canvas) -> [UInt8] {
    let (width, height) = (canvas.width, canvas.height)
    var rows = [UInt8](repeating: 2, count: (width + 1) * height)
    var target = rows.mutableSpan
    let pixels = canvas.pixels.span
    for x in 0..<width { target[1 + x] = pixels[x] }
    for y in 1..<max(height, 1) {
      let (row, start) = (y &* width, y &* (width &+ 1) &+ 1)
      for x in 0..<width { target[start &+ x] = pixels[row &+ x] &- pixels[row &- width &+ x] }
    }
    return rows
  }

  private static func compressed(_ bytes: [UInt8]) throws(WaveformError) -> [UInt8] {
    // At a stable address, because zlib's state points back to it.
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    defer { unsafe stream.deallocate() }
    unsafe stream.initialize(to: z_stream())
    // A window of 8 KB and tables for it: clearing larger ones would take longer than compressing. Runs need no window.
    let (windowBits, memoryLevel): (Int32, Int32) = (13, 6)
    let status = unsafe deflateInit2_(
      stream, 1, Z_DEFLATED, windowBits, memoryLevel, Z_RLE, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard status == Z_OK else { throw .pictureNotEncoded }
    defer { unsafe _ = deflateEnd(stream) }
    var isComplete = false
    let bound = unsafe Int(deflateBound(stream, UInt(bytes.count)))
    let output = unsafe [UInt8](unsafeUninitializedCapacity: bound) { buffer, count in
      unsafe bytes.withUnsafeBufferPointer { input in
        unsafe stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
        unsafe stream.pointee.avail_in = UInt32(input.count)
        unsafe stream.pointee.next_out = buffer.baseAddress
        unsafe stream.pointee.avail_out = UInt32(buffer.count)
        isComplete = unsafe deflate(stream, Z_FINISH) == Z_STREAM_END
      }
      count = unsafe buffer.count - Int(stream.pointee.avail_out)
    }
    guard isComplete else { throw .pictureNotEncoded }
    return output
  }

  private static func append(_ name: String, _ content: [UInt8], to file: inout [UInt8]) {
    file += bytes(UInt32(content.count))
    let start = file.count
    file += name.utf8
    file += content
    let checksum = unsafe file[start...].withUnsafeBufferPointer { unsafe crc32(0, $0.baseAddress, UInt32($0.count)) }
    file += bytes(UInt32(checksum))
  }

  private static func bytes(_ number: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
  }
}
