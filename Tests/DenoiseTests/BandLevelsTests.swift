import Glibc
import Testing

@testable import Denoise

struct BandLevelsTests {
  @Test("an impulse has the same level in all bands, rounded to 1/16 dB", arguments: [1, 2, 3, 5, 7, 1000, 20_000])
  func impulse(height: Float) {
    var levels = BandLevels(length: 256, sampleRate: 16_000)
    var samples = [Float](repeating: 0, count: 256)
    samples[128] = height
    levels.measure(samples)
    let (row, count) = (levels.levels, levels.count)
    let expected = Int32((16 * 20 * log10(Double(height))).rounded())
    #expect((0..<count).allSatisfy { row[$0] == expected } && (count..<20).allSatisfy { row[$0] == 0 })
  }

  @Test("only a window more than 6 dB below the quiet ones of the recording is suspect")
  func mismatch() {
    func row(_ decibels: Int32) -> BandLevels.Row { BandLevels.Row(repeating: 16 * decibels) }
    var histogram = LevelHistogram(bandCount: 20)
    for second in 0..<100 { histogram.append(row(second < 30 ? 40 : 80)) }
    #expect([41, 35, 34, 30].map { histogram.mismatch(of: row($0)) } == [0, 0, 0.5, 4.5])
  }
}
