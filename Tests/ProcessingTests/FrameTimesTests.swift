import Randomness
import Terms
import Testing

@testable import Processing

@Suite struct FrameTimesTests {
  @Test("the times of a region that was found lead back to its frames, at any rate")
  func roundTrip() {
    var random = TestRandom(for: 4302)
    for _ in 0..<10_000 {
      let rate = Int.random(in: 1...1_000_000, using: &random)
      let start = Int64.random(in: 0..<86_400 * Int64(rate), using: &random)
      let frames = start..<start + Int64.random(in: 1...Int64(rate), using: &random)
      let region = NoiseSource.Region(NoiseRegion(frames, sampleRate: rate, level: -50, score: 1))
      guard region.frames(sampleRate: rate, total: frames.upperBound) == frames else {
        Issue.record("\(frames) at \(rate) Hz: \(region)")
        return
      }
    }
    let short = NoiseRegion(1323..<2646, sampleRate: 44_100, level: -50, score: 1).timed
    #expect(short.start == 0.03 && short.end == 0.06)
  }

  /// 9.2 s at 48 kHz; what is in the file is the command's and the service's answer.
  @Test(
    "a region is rounded to frames, and may exceed the end by 10 ms",
    arguments: [
      (8.7, 9.2, 417_600..<441_600), (8.7, 9.21, 417_600..<441_600), (8.7, 9.211, nil), (9.19, 9.21, 441_120..<441_600),
      (9.2, 9.21, nil), (9.199995, 9.2, nil), (0.00001, 0.00001001, 0..<1), (0, 0.00003, 0..<1), (0, .infinity, nil),
      (.nan, 1, nil), (0, .nan, nil), (-0.1, 1, nil), (2, 1, nil), (1e300, 1e301, nil),
    ] as [(Double, Double, Range<Int64>?)])
  func region(start: Double, end: Double, frames: Range<Int64>?) {
    #expect(NoiseSource.Region(start: start, end: end).frames(sampleRate: 48_000, total: 441_600) == frames)
  }

  @Test("in a recording whose length isn't known, a region may be anywhere")
  func unknownLength() {
    func frames(_ start: Double, _ end: Double) -> Range<Int64>? {
      NoiseSource.Region(start: start, end: end).frames(sampleRate: 48_000, total: nil)
    }
    #expect(frames(8.7, 9.21) == 417_600..<442_080)
    #expect(frames(1e300, .infinity).map { $0.count } == 1)
    #expect(frames(.nan, 1) == nil)
  }
}
