import CPNG
import Randomness
import Testing

@testable import Waveform

/// Pixels of all kinds, decoded by libpng.
@Suite struct PNGEncoderTests {
  /// Each value twice at most in a row, so often that plain Huffman codes would have more than 15 bits.
  private static let unequal: [UInt8] = {
    var counts = [1, 1]
    while counts.count < 16 { counts.append(counts[counts.count - 1] + counts[counts.count - 2]) }
    let values = counts.enumerated().reversed().flatMap { [UInt8](repeating: UInt8($0.offset + 3), count: $0.element) }
    var row = values
    for (index, value) in values.enumerated() {
      let half = (values.count + 1) / 2
      row[index < half ? 2 * index : 2 * (index - half) + 1] = value
    }
    return row
  }()

  private static let cases: [(name: String, width: Int, pixels: [UInt8])] = {
    var random = TestRandom(state: 7)
    let noise = (0..<70_000).map { _ in UInt8.random(in: 0...255, using: &random) }
    let runs = (1...600).flatMap { [UInt8](repeating: UInt8($0 & 255), count: $0) }
    return [
      ("one pixel", 1, [5]), ("one column", 1, Array(noise[..<1000])), ("one row", 70_000, noise),
      ("noise", 250, noise), ("one color", 1000, [UInt8](repeating: 0, count: 200_000)),
      ("another color", 999, [UInt8](repeating: 9, count: 199_800)),
      ("runs of every length in a row", runs.count, runs),
      ("runs of every length, one above the other", 300, runs),
      ("very unequal frequencies", unequal.count, unequal),
    ]
  }()

  @Test("a picture has the pixels that it was made from", arguments: cases.indices)
  func roundTrip(_ number: Int) throws {
    let (name, width, pixels) = Self.cases[number]
    let height = pixels.count / width
    let colors = (0..<256).map { png_color(red: UInt8($0), green: UInt8(255 - $0), blue: UInt8($0 ^ 0x55)) }
    let room = stillwave_png_bound(UInt32(width), UInt32(height))
    let file = unsafe [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
      unsafe pixels.withUnsafeBufferPointer { pixels in
        unsafe colors.withUnsafeBufferPointer { colors in
          var picture = unsafe stillwave_picture(
            width: UInt32(width), height: UInt32(height), pixels: pixels.baseAddress, colors: colors.baseAddress,
            opacities: nil, color_count: 256, opacity_count: 0)
          unsafe count = stillwave_write_png(&picture, buffer.baseAddress, buffer.count)
        }
      }
    }
    let image = try #require(PNGImage(file), "\(name)")
    #expect(image.width == width && image.height == height, "\(name)")
    let wrong = (0..<width * height).first { image[$0 % width, $0 / width].red != pixels[$0] }
    #expect(wrong == nil, "\(name)")
  }
}
