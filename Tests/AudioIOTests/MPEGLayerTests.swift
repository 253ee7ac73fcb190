import SoundFiles
import Testing

@testable import AudioIO

/// MPEG audio of layer I, which has no counting frame. The frames are synthetic, because no encoder is available.
struct MPEGLayerTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Returns frames of one channel at 44.1 kHz with noise in the second subband, ISO 11172-3 2.4.1.5: a header; for
  /// each of 32 subbands, 4 bits for the coding of its samples; 6 bits of scale; then 12 samples. `rate` is the bit
  /// rate in steps of 32 kbit/s.
  private func frames(_ count: Int, rate: Int, seed: UInt64) -> [UInt8] {
    var generator = SeededGenerator(state: seed)
    return (0..<count).flatMap { _ -> [UInt8] in
      var bits: [UInt8] = [0, 7].flatMap { value in (0..<4).map { UInt8(value >> (3 - $0) & 1) } }
      bits += [UInt8](repeating: 0, count: 30 * 4)
      bits += [0, 0, 0, 1, 1, 0]
      for _ in 0..<12 {
        // All ones isn't a valid sample.
        let sample = Int.random(in: 0..<255, using: &generator)
        bits += (0..<8).map { UInt8(sample >> (7 - $0) & 1) }
      }
      let length = 12 * 32_000 * rate / 44_100 * 4
      bits += [UInt8](repeating: 0, count: (length - 4) * 8 - bits.count)
      let content = stride(from: 0, to: bits.count, by: 8).map { bits[$0..<$0 + 8].reduce(UInt8(0)) { $0 << 1 | $1 } }
      return [0xFF, 0xFF, UInt8(rate << 4), 0xC0] + content
    }
  }

  @Test("frames of any bit rate are all decoded, and found by seeking", arguments: [(8, 8), (12, 2), (2, 12), (14, 3)])
  func bitRates(first: Int, second: Int) throws {
    let path = try folder.file("a", frames(100, rate: first, seed: 1) + frames(700, rate: second, seed: 2))
    #expect(try format(of: path).codec == .mp1)
    let whole = try decode(path)
    let isLoud = whole.suffix(384).contains { abs(Int($0)) > 100 }
    #expect(whole.count == 800 * 384 && isLoud)
    // Except for the overlap of the first frames, each part has the same samples alone and joined.
    let alone = try decode(try folder.file("b", frames(700, rate: second, seed: 2)))
    let agrees = whole.suffix(698 * 384) == alone.suffix(698 * 384)
    #expect(agrees && alone.count == 700 * 384)
    for frame in [1, 383, 384, 100 * 384 - 5, 200_000, 799 * 384, 800 * 384 - 1] {
      let equal = try decode(path, from: Int64(frame)) == Array(whole[frame...])
      #expect(equal, "from \(frame)")
    }
    let map = try SoundMap(path: path)
    #expect(map.frames == 800 * 384 && map.findings.lacksLength == (first != second))
    #expect(map.findings.wrongCount == nil && !map.findings.lacksEnd)
  }

  @Test("foreign bytes between the frames are skipped and reported")
  func foreignBytes() throws {
    let (one, two) = (frames(300, rate: 4, seed: 1), frames(200, rate: 4, seed: 2))
    let whole = try decode(try folder.file("a", one + two))
    let path = try folder.file("b", one + [UInt8](repeating: 0, count: 5000) + two)
    let equal = try decode(path) == whole
    #expect(equal && whole.count == 500 * 384)
    #expect(try SoundMap(path: path).findings.foreignBytes == 5000)
  }

  @Test("a file cut within a frame is used up to that frame")
  func cut() throws {
    let bytes = frames(300, rate: 6, seed: 1)
    let whole = try decode(try folder.file("a", bytes))
    let path = try folder.file("b", Array(bytes.dropLast(30)))
    let equal = try decode(path) == Array(whole.dropLast(384))
    let lacksEnd = try SoundMap(path: path).findings.lacksEnd
    #expect(equal && lacksEnd)
  }
}
