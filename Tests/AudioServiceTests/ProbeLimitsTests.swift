import Testing

@testable import AudioService

/// What an upload may cost before it is known to be sound.
struct ProbeLimitsTests {
  @Test(
    "a probe has five seconds of processor time and ten by the clock; more where every byte is looked at",
    arguments: [
      (true, 7_800_000, 2, 10), (true, 8 << 30, 2, 10), (false, 900_000, 5, 10), (false, 19_999_999, 5, 10),
      (false, 200_000_000, 15, 30), (false, -1, 5, 10),
    ] as [(Bool, Int64, Int64, Double)])
  func limits(isMedia: Bool, bytes: Int64, processorSeconds: Int64, seconds: Double) {
    let limits = ProbeLimits(isMedia: isMedia, bytes: bytes)
    #expect(limits.processorSeconds == processorSeconds && limits.seconds == seconds)
  }
}
