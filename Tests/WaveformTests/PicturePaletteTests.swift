import Testing

@testable import Waveform

@Suite struct PicturePaletteTests {
  /// Every 85th color of Matplotlib 3's tables.
  @Test(
    "the colors are Matplotlib's, from dark to light",
    arguments: [
      (PicturePalette.magma, [0x000004, 0x721F81, 0xF1605D, 0xFCFDBF]),
      (.viridis, [0x440154, 0x31688E, 0x35B779, 0xFDE725]), (.grey, [0x000000, 0x555555, 0xAAAAAA, 0xFFFFFF]),
    ])
  func colors(palette: PicturePalette, known: [Int]) {
    let colors = palette.colors
    #expect(colors.count == 256)
    for (index, color) in known.enumerated() {
      let own = colors[index * 85]
      for (mine, shift) in [(own.red, 16), (own.green, 8), (own.blue, 0)] {
        #expect(abs(Int(mine) - color >> shift & 255) <= 5, "\(palette) \(index * 85)")
      }
    }
    let lightness = colors.map { 0.2126 * Double($0.red) + 0.7152 * Double($0.green) + 0.0722 * Double($0.blue) }
    #expect(zip(lightness, lightness.dropFirst()).allSatisfy { $0 <= $1 + 0.5 })
  }

  @Test func aPictureHasOneColorPerValue() throws {
    let values = (0..<1024).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    let png = try PicturePalette.magma.png(values, width: 32, height: 32)
    #expect(Array(png[16..<24]) == [0, 0, 0, 32, 0, 0, 0, 32] && png[24...25] == [8, 3])
    let empty = try PicturePalette.grey.png([], width: 0, height: 5)
    #expect(Array(empty[16..<24]) == [0, 0, 0, 1, 0, 0, 0, 5])
  }
}
