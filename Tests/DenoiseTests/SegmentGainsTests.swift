import Glibc
import Testing

@testable import Denoise

/// The equations of PriorSNR.swift, CepstralPrior.swift, and the gain rules as plain loops in double precision, over
/// rows of γ. Returns the gains of the segment's rows.
private struct ReferenceGains {
  let method: DenoiseMethod
  let frame: AnalysisFrame
  let sampleRate: Int
  let least: Double
  let floor: Double
  var hiss = 0.0

  private var hops: Double { Double(frame.hop) / Double(sampleRate) }

  func gains(_ posterior: [[Double]], segment: Range<Int>) -> [[Double]] {
    let bins = posterior[0].indices
    let lanes = bins.map { bin in directed(posterior.map { $0[bin] }) }
    let cepstral = cepstral(posterior)
    let means = bins.map { bin in directed(posterior.map { $0[bin] }, isGeometric: false) }
    return segment.map { time in
      bins.map { bin in
        let prior = max(least, pow(lanes[bin][time], 0.6) * exp2(0.4 * cepstral[time][bin]))
        let gain =
          method == .wiener
          ? prior / (1 + prior) : referenceLogSpectralGain(prior: prior, posterior: posterior[time][bin])
        guard hiss > 0 else { return max(floor, gain) }
        let near: [Double] = ((bin - 16)..<(bin + 16)).map { means[min(bins.count - 1, max(0, $0))][time] }
        let band: Double = near.reduce(0, +) / 32, low = pow(10, -0.85), high = pow(10, -0.65)
        let speech: Double = min(1, max(0, (band - low) / (high - low)))
        return floor + (1 - hiss * (1 - speech)) * (max(floor, gain) - floor)
      }
    }
  }

  /// √(ξf ξb) of one bin, or ½ (ξf + ξb).
  private func directed(_ posterior: [Double], isGeometric: Bool = true) -> [Double] {
    let usual = pow(0.98, hops / 0.016)
    // With a floor of −25 dB.
    let memory = usual + hiss * (pow(0.97, hops / 0.016) - usual)
    func follow(_ posterior: [Double]) -> [Double] {
      var prior = [max(posterior[0] - 1, least)]
      for time in 1..<posterior.count {
        let gain = referenceLogSpectralGain(prior: prior[time - 1], posterior: posterior[time - 1])
        let cleaned = gain * gain * posterior[time - 1]
        prior.append(max(least, memory * cleaned + (1 - memory) * max(0, posterior[time] - 1)))
      }
      return prior
    }
    let backward = follow(posterior.reversed()).reversed()
    return zip(follow(posterior), backward).map { isGeometric ? ($0 * $1).squareRoot() : ($0 + $1) / 2 }
  }

  /// log2 ξc
  private func cepstral(_ posterior: [[Double]]) -> [[Double]] {
    let length = frame.length, half = length / 2
    let cosines = (0..<length).map { cos(2 * .pi * Double($0) / Double(length)) }
    func transform(_ row: [Double]) -> [Double] {
      (0...half).map { index in
        (0..<length).reduce(0.0) { $0 + row[min($1, length - $1)] * cosines[index * $1 % length] }
      }
    }
    let cepstra = posterior.map { row in
      transform(row.map { log2(max($0 - 1, least)) }).map { $0 / Double(length) }
    }
    let perMillisecond = Double(sampleRate) / 1000
    let memories = cepstra.map { cepstrum in
      var memory = (0...half).map { quefrency in
        let milliseconds = Double(quefrency) / perMillisecond
        return milliseconds < 0.2 ? 0.2 : milliseconds < 1.25 ? 0.7 : 0.95
      }
      let pitches = Int(perMillisecond / 0.3)...min(Int(perMillisecond / 0.07), half - 1)
      if let peak = pitches.max(by: { cepstrum[$0] < cepstrum[$1] }), cepstrum[peak] > 7.2 / Double(half).squareRoot() {
        let reach = Int((0.125 * perMillisecond).rounded())
        for quefrency in (peak - reach)...(peak + reach) { memory[quefrency] = 0.2 }
      }
      return memory.map { pow($0, hops / 0.012) }
    }
    func follow(_ cepstra: [[Double]], _ memories: [[Double]]) -> [[Double]] {
      var state = [Double](repeating: 0, count: half + 1)
      return zip(cepstra, memories).map { cepstrum, memory in
        for index in state.indices { state[index] = cepstrum[index] + memory[index] * (state[index] - cepstrum[index]) }
        return state
      }
    }
    let forward = follow(cepstra, memories)
    let backward = Array(follow(cepstra.reversed(), memories.reversed()).reversed())
    return zip(forward, backward).map { forward, backward in
      transform(zip(forward, backward).map { ($0 + $1) / 2 }).map { $0 - 0.58 }
    }
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
    _ posterior: [Float], rows: Int, segment: Range<Int>, _ settings: DenoiseSettings, noise: [Float]? = nil,
    hiss: Float = 0
  ) -> [Float] {
    let noise = noise ?? [Float](repeating: 1, count: frame.binCount)
    let rule = SegmentGains(
      settings: settings, noise: FrameNoise(noise, hiss: hiss), frame: frame, sampleRate: sampleRate)
    let material = FrameRows(frame: frame, channels: 1, count: rows, segmentHops: segment.count)
    let workspace = Workspace(frame: frame), bins = frame.binCount
    for row in 0..<rows {
      for bin in 0..<bins { unsafe material.posterior[Int64(row)][bin] = posterior[row * bins + bin] }
    }
    for row in stride(from: 0, to: Int64(rows), by: 2) {
      rule.cepstralPrior?.analyse(row, material, workspace.transform)
    }
    let own = Int64(segment.lowerBound)..<Int64(segment.upperBound)
    rule.compute(own, context: 0..<Int64(rows), material, workspace)
    return own.flatMap { frame in (0..<bins).map { unsafe material.gains[frame][$0] } }
  }

  @Test("the gains match the equations", arguments: [DenoiseMethod.mmseLSA, .wiener], [0, 0.6, 1])
  func equations(method: DenoiseMethod, hiss: Double) {
    let rows = 120, segment = 30..<90, bins = frame.binCount
    let posterior = posterior(rows: rows)
    let settings = DenoiseSettings(method: method, reductionDB: 25)
    let gains = gains(posterior, rows: rows, segment: segment, settings, hiss: Float(hiss))
    let reference = ReferenceGains(
      method: method, frame: frame, sampleRate: sampleRate, least: pow(10, -2.4), floor: pow(10, -1.25), hiss: hiss)
    let exact = reference.gains(
      (0..<rows).map { row in (0..<bins).map { Double(posterior[row * bins + $0]) } }, segment: segment)
    for row in 0..<segment.count {
      for bin in [0, 1, 57, bins - 1] {
        #expect(abs(Double(gains[row * bins + bin]) / exact[row][bin] - 1) < 1e-3, "bin \(bin), row \(row)")
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

  @Test("no gain is below the floor or above 1", arguments: DenoiseMethod.allCases)
  func bounds(method: DenoiseMethod) {
    let posterior = posterior(rows: 60)
    for reduction in [0.0, 12, 18, 60, 99] {
      let settings = DenoiseSettings(method: method, reductionDB: reduction)
      let floor = Float(pow(10, -min(60, reduction) / 20))
      for hiss: Float in [0, 0.3, 1] {
        let gains = gains(posterior, rows: 60, segment: 10..<50, settings, hiss: hiss)
        #expect(gains.allSatisfy { $0 >= floor && $0 <= 1 })
      }
    }
  }

  @Test("a bin without noise is left alone", arguments: DenoiseMethod.allCases)
  func silentBin(method: DenoiseMethod) {
    var noise = [Float](repeating: 1, count: frame.binCount)
    noise[7] = 0
    let gains = gains(
      posterior(rows: 60), rows: 60, segment: 10..<50, DenoiseSettings(method: method, reductionDB: 40), noise: noise,
      hiss: 1)
    for row in 0..<40 { #expect(gains[row * frame.binCount + 7] == 1) }
  }

  @Test("samples beyond the context don't matter", arguments: [0, 1] as [Float])
  func context(hiss: Float) {
    let grid = SegmentGrid(frame: frame, channels: 1)
    let far = grid.contextHops + 100, bins = frame.binCount
    let rows = 2 * far + 10
    let posterior = posterior(rows: rows)
    let settings = DenoiseSettings(reductionDB: 25)
    let whole = gains(posterior, rows: rows, segment: far..<(far + 10), settings, hiss: hiss)
    let near = Array(posterior[(100 * bins)..<((rows - 100) * bins)])
    let cut = gains(
      near, rows: rows - 200, segment: grid.contextHops..<(grid.contextHops + 10), settings, hiss: hiss)
    let worst = zip(whole, cut).map { abs(20 * log10(Double($0 / $1))) }.max() ?? 0
    #expect(worst < 0.2)
  }
}
