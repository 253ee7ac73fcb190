import Foundation
import Testing

@testable import AudioIO

struct SampleConversionTests {
  @Test(
    arguments: [
      (0, 0), (1, 32767), (-1, -32768), (0.5, 16384), (2, 32767), (-2, -32768), (1e30, 32767), (-1e30, -32768),
      (32767 / 32768, 32767), (.nan, 0), (.infinity, 0), (-.infinity, 0), (1e-30, 0), (-0.0, 0),
      (0.4 / 32768, 0), (0.6 / 32768, 1), (-0.6 / 32768, -1), (32766.6 / 32768, 32767),
    ] as [(Float, Int16)])
  func aFloatBecomesTheNearestSixteenBitValue(sample: Float, value: Int16) {
    #expect(quantised16(sample) == value)
  }

  @Test func halvesGoToTheEvenNeighbour() {
    for (half, value) in [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (-2.5, -2)] as [(Float, Int16)] {
      #expect(quantised16(half / 32768) == value)
    }
  }

  @Test("a double becomes the nearest 16-bit value, not that of the nearest float")
  func doubles() {
    let cases: [(Double, Int16)] = [
      (16_384.5 + 1e-6, 16_385), (16_384.5, 16_384), (16_384.5 - 1e-6, 16_384), (16_385.5 - 1e-6, 16_385),
      (-16_384.5 - 1e-6, -16_385), (-16_385.5 + 1e-6, -16_385), (0.5 + 1e-12, 1), (-0.5 - 1e-12, -1), (0.5, 0),
      (.leastNonzeroMagnitude, 0), (32_766.5 + 1e-6, 32_767), (32_767.9, 32_767), (1e300, 32_767), (-1e300, -32_768),
      (Double(Float.greatestFiniteMagnitude) * 32_768, 32_767), (.nan, 0), (.infinity, 0), (-.infinity, 0),
    ]
    for (scaled, value) in cases { #expect(quantised16(narrowed(scaled / 32_768)) == value, "\(scaled)") }
    for value in Int16.min...Int16.max {
      guard quantised16(narrowed(Double(value) / 32_768)) == value else { Issue.record("\(value)"); return }
    }
  }

  @Test func everySixteenBitValueSurvivesTheRoundTripThroughFloat() {
    for value in Int16.min...Int16.max {
      guard quantised16(Float(value) / 32768) == value else { Issue.record("\(value)"); return }
    }
  }

  @Test func aWholeBufferIsQuantizedLikeItsSamples() {
    let samples: [Float] = (-4000..<4000).map { Float($0) / 3777 } + [.nan, .infinity, -.infinity]
    var target = [Int16](repeating: 1, count: samples.count)
    var span = target.mutableSpan
    #expect(quantise16(samples.span, into: &span) == 3)
    #expect(target == samples.map(quantised16))
  }

  @Test(arguments: [0, 1, 7, 500, 1023, 1024, 2050])
  func aNonFiniteSampleChangesNoOther(place: Int) {
    for odd in [Float.nan, .infinity, -.infinity, .greatestFiniteMagnitude, -1e30, 2.5 / 32768, -0.5 / 32768] {
      var samples = (0..<3000).map { (index: Int) -> Float in
        let (halfSteps, loud) = (Float(index % 7 - 3), Float(index % 5 - 2))
        return halfSteps / 65_536 + loud * 0.6
      }
      samples[place] = odd
      var target = [Int16](repeating: 1, count: samples.count)
      var span = target.mutableSpan
      #expect(quantise16(samples.span, into: &span) == (odd.isFinite ? 0 : 1))
      #expect(target == samples.map(quantised16))
    }
  }

  @Test(arguments: [8, 12, 16, 20, 24, 32])
  func theFullRangeOfEveryDepthIsReachedButNotExceeded(bits: Int) {
    #expect(quantisedLeftJustified(-1, bits: bits) == Int32.min)
    #expect(quantisedLeftJustified(-7, bits: bits) == Int32.min)
    #expect(quantisedLeftJustified(1, bits: bits) == (Int32.max >> Int32(32 - bits)) << Int32(32 - bits))
    #expect(quantisedLeftJustified(0.5, bits: bits) == 1 << 30)
    #expect(quantisedLeftJustified(.nan, bits: bits) == 0)
    let step = Float(exp2(Double(1 - bits)))
    #expect(quantisedLeftJustified(3 * step, bits: bits) >> Int32(32 - bits) == 3)
    #expect(quantisedLeftJustified(-3 * step, bits: bits) >> Int32(32 - bits) == -3)
  }
}
