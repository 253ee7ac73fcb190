import AudioIO
import Testing

@testable import Processing

struct RequantiserTests {
  @Test(
    "only what was changed is dithered, at up to 16 bits",
    arguments: [(8, false, true), (16, false, true), (16, true, false), (24, false, false)])
  func dither(bits: Int, changesNothing: Bool, isDithered: Bool) {
    let samples = (1...1000).map { Float($0 % 100) / Float(1 << (bits - 1)) }
    var requantiser = Requantiser(.integer(bits: bits), changesNothing: changesNothing, isResidue: false)
    var result = [Float](repeating: 0, count: samples.count)
    var span = result.mutableSpan
    requantiser.apply(samples.span, original: samples.span, number: 0, into: &span)
    #expect((result != samples) == isDithered)
  }
}
