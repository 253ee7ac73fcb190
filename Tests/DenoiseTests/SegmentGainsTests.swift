import Glibc
import Testing

@testable import Denoise

/// The equations of PriorSNR.swift and the gain rules as plain loops in double precision over one bin.
private func referenceGains(
  _ posterior: [Double], segment: Range<Int>, method: DenoiseMethod, memory: Double, least: Double, floor: Double
) -> [Double] {
  func follow(_ posterior: [Double]) -> [Double] {
    var prior = [max(posterior[0] - 1, least)]
    for time in 1..<posterior.count {
      let gain = referenceLogSpectralGain(prior: prior[time - 1], posterior: posterior[time - 1])
      let cleaned = gain * gain * posterior[time - 1]
      prior.append(max(least, memory * cleaned + (1 - memory) * max(0, posterior[time] - 1)))
    }
    return prior
  }
  let forward = follow(posterior)
  let backward = Array(follow(posterior.reversed()).reversed())
  return segment.map { time in
    let prior = (forward[time] * backward[time]).squareRoot()
    let gain =
      method == .wiener ? prior / (1 + prior) : referenceLogSpectralGain(prior: prior, posterior: posterior[time])
    return max(floor, gain)
  }
}

@Suite struct SegmentGainsTests {
  private let sampleRate = 8000
  private var frame: AnalysisFrame { AnalysisFrame(sampleRate: sampleRate) }

  /// γ of noise with bursts of speech, `[row][bin]`.
  private func posterior(rows: Int) -> [Float] {
    let noise = TestSignals.noise(rows * frame.binCount, level: 1)
    return noise.enumerated().map { index, value in
      let row = index / frame.binCount
      return min(1e4, value * value * (row % 40 < 9 ? 300 : 1))
    }
  }

  private func gains(
    _ posterior: [Float], rows: Int, segment: Range<Int>, _ settings: DenoiseSettings, noise: [Float]? = nil
  ) -> [Float] {
    let noise = noise ?? [Float](repeating: 1, count: frame.binCount)
    let rule = SegmentGains(settings: settings, noise: noise, frame: frame, sampleRate: sampleRate)
    var gains = [Float](repeating: -1, count: segment.count * frame.binCount)
    rule.compute(posterior: posterior, frames: rows, segment: segment, into: &gains)
    return gains
  }

  @Test("the gains are those of the equations", arguments: [DenoiseMethod.mmseLSA, .wiener])
  func equations(method: DenoiseMethod) {
    let rows = 120, segment = 30..<90, bins = frame.binCount
    let posterior = posterior(rows: rows)
    let gains = gains(posterior, rows: rows, segment: segment, DenoiseSettings(method: method, reductionDB: 25))
    for bin in [0, 1, 57, bins - 1] {
      let exact = referenceGains(
        (0..<rows).map { Double(posterior[$0 * bins + bin]) }, segment: segment, method: method,
        memory: pow(0.98, 0.75), least: pow(10, -2.4), floor: pow(10, -1.25))
      for row in 0..<segment.count {
        #expect(abs(Double(gains[row * bins + bin]) / exact[row] - 1) < 1e-3, "bin \(bin), row \(row)")
      }
    }
  }

  @Test func berouti1979FollowsTheFramesSNR() {
    let bins = frame.binCount
    let weights = [Float](repeating: 1 / Float(bins), count: bins)
    for (decibels, alpha) in [(-20.0, 4.75), (-5, 4.75), (0, 4), (10, 2.5), (20, 1), (35, 1)] {
      let row = [Float](repeating: Float(pow(10, decibels / 10)), count: bins)
      let found = SpectralSubtraction.overSubtraction(posterior: row.span, weights: weights.span)
      #expect(abs(Double(found) - alpha) < 1e-4)
    }
    #expect(abs(SpectralSubtraction.gain(posterior: 10, overSubtraction: 2.5, floor: 0.1) - 0.866_025_4) < 1e-6)
    #expect(abs(SpectralSubtraction.gain(posterior: 2, overSubtraction: 2.5, floor: 0.1) - 0.1) < 1e-6)
    #expect(abs(SpectralSubtraction.gain(posterior: 0.25, overSubtraction: 4, floor: 0.1) - 0.2) < 1e-6)
  }

  @Test("no gain is under the floor or over 1", arguments: DenoiseMethod.allCases)
  func bounds(method: DenoiseMethod) {
    let posterior = posterior(rows: 60)
    for reduction in [0.0, 12, 18, 60, 99] {
      let settings = DenoiseSettings(method: method, reductionDB: reduction)
      let floor = Float(pow(10, -min(60, reduction) / 20))
      let gains = gains(posterior, rows: 60, segment: 10..<50, settings)
      #expect(gains.allSatisfy { $0 >= floor && $0 <= 1 })
    }
  }

  @Test("a bin without noise is left alone", arguments: DenoiseMethod.allCases)
  func silentBin(method: DenoiseMethod) {
    var noise = [Float](repeating: 1, count: frame.binCount)
    noise[7] = 0
    let gains = gains(
      posterior(rows: 60), rows: 60, segment: 10..<50, DenoiseSettings(method: method, reductionDB: 40), noise: noise)
    for row in 0..<40 { #expect(gains[row * frame.binCount + 7] == 1) }
  }

  @Test func whatLiesBeyondTheContextDoesNotMatter() {
    let grid = SegmentGrid(frame: frame, channels: 1)
    let far = grid.contextHops + 100, bins = frame.binCount
    let rows = 2 * far + 10
    let posterior = posterior(rows: rows)
    let settings = DenoiseSettings(reductionDB: 25)
    let whole = gains(posterior, rows: rows, segment: far..<(far + 10), settings)
    let near = Array(posterior[(100 * bins)..<((rows - 100) * bins)])
    let cut = gains(near, rows: rows - 200, segment: grid.contextHops..<(grid.contextHops + 10), settings)
    let worst = zip(whole, cut).map { abs(20 * log10(Double($0 / $1))) }.max() ?? 0
    #expect(worst < 0.1)
  }
}
