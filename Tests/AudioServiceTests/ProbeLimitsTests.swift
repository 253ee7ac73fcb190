import Testing
import Workers

@testable import AudioService

/// How much work an upload may cost before it's known to be audio.
struct ProbeLimitsTests {
  @Test(
    "a probe has five seconds of processor time and ten by the clock; more if every byte is read",
    arguments: [
      (true, 7_800_000, 2, 10), (true, 8 << 30, 2, 10), (false, 900_000, 5, 10), (false, 19_999_999, 5, 10),
      (false, 200_000_000, 15, 30), (false, -1, 5, 10),
    ] as [(Bool, Int64, Int64, Double)])
  func limits(isMedia: Bool, bytes: Int64, processorSeconds: Int64, seconds: Double) {
    let limits = ProbeLimits(isMedia: isMedia, bytes: bytes)
    #expect(limits.processorSeconds == processorSeconds && limits.seconds == seconds)
  }
}
