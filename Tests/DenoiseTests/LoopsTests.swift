import CKernels
import Glibc
import Randomness
import Testing

@testable import Denoise

/// Runs a check with the loops of each instruction set that this processor has.
private func withEachSet(_ check: (kernels) -> Void) {
  var index: Int32 = 0
  while let loops = unsafe kernels_of_set(index) {
    unsafe check(loops.pointee)
    index += 1
  }
}

/// Numbers of very different sizes, or between bounds.
private struct Numbers {
  private var random: TestRandom

  init(_ use: Int) { random = TestRandom(for: use) }

  mutating func uniform(_ count: Int, _ range: ClosedRange<Float> = -1...1) -> [Float] {
    (0..<count).map { _ in Float.random(in: range, using: &random) }
  }

  /// From 2^low to 2^high, evenly by octaves.
  mutating func powers(_ count: Int, _ low: Float, _ high: Float) -> [Float] {
    uniform(count, low...high).map { Glibc.exp2($0) }
  }
}

private func bits(_ values: some Sequence<Float>) -> [UInt32] { values.map(\.bitPattern) }

/// Each loop has the bits of its plain version, with every instruction set and at every length.
@Suite struct LoopsTests {
  private static let counts = [3, 9, 17, 193, 1025]

  @Test(arguments: counts) func twoFramesInATransform(count: Int) {
    var numbers = Numbers(count)
    let length = 2 * count - 2
    let z = numbers.uniform(2 * length), g = numbers.uniform(count, 0...1), h = numbers.uniform(count, 0...1)
    let power = PlainLoops.pairPower(z)
    withEachSet { loops in
      var (first, second) = (g, h)
      unsafe loops.pair_power(&first, &second, z, count, true)
      #expect(bits(first) == bits(zip(g, power.a).map { $0 + $1 }))
      #expect(bits(second) == bits(zip(h, power.b).map { $0 + $1 }))
      unsafe loops.pair_power(&first, &second, z, count, false)
      #expect(bits(first) == bits(power.a) && bits(second) == bits(power.b))
      var out = z
      unsafe loops.pair_gains(&out, z, g, h, count)
      #expect(bits(out) == bits(PlainLoops.pairGains(z, g, h)))
    }
  }

  @Test(arguments: counts) func windows(count: Int) {
    var numbers = Numbers(count)
    let samples = numbers.uniform(count + 5), window = numbers.uniform(count, 0...1), sum = numbers.uniform(count)
    let a = zip(samples, window).map { $0 * $1 }, b = zip(samples.dropFirst(5), window).map { $0 * $1 }
    let silence = [Float](repeating: -0.0, count: count)
    var trace = silence
    trace[count - 1] = .leastNonzeroMagnitude
    let open = [Float](repeating: 1, count: count)
    withEachSet { loops in
      var z = [Float](repeating: 7, count: 2 * count), out = sum
      unsafe samples.withUnsafeBufferPointer { samples in
        guard let start = samples.baseAddress else { return }
        let sounding = unsafe loops.window_pair(&z, start, start + 5, window, count)
        #expect(sounding == 3)
      }
      #expect(bits(z) == bits(PlainLoops.pair(a, b)))
      unsafe loops.add_windowed(&out, z, window, count)
      #expect(bits(out) == bits((0..<count).map { sum[$0] + a[$0] * window[$0] }))
      for (expected, frames) in [(silence, silence), (trace, silence), (silence, trace)].enumerated() {
        let sounding = unsafe loops.window_pair(&z, frames.0, frames.1, open, count)
        #expect(sounding == expected)
      }
    }
  }

  @Test(arguments: counts) func symmetricRows(count: Int) {
    var numbers = Numbers(count)
    let a = numbers.powers(count, -30, 14), b = numbers.powers(count, -30, 14)
    func logs(_ row: [Float]) -> [Float] { row.map { PlainLoops.log2(PlainLoops.larger($0 - 1, 0.01)) } }
    withEachSet { loops in
      var z = [Float](repeating: 7, count: 4 * count - 4)
      unsafe loops.pair_rows(&z, a, b, count)
      #expect(z == PlainLoops.pair(PlainLoops.mirrored(a), PlainLoops.mirrored(b)))
      unsafe loops.pair_logs(&z, a, b, 0.01, count)
      let expected = PlainLoops.pair(PlainLoops.mirrored(logs(a)), PlainLoops.mirrored(logs(b)))
      #expect(bits(z) == bits(expected))
      var (first, second) = (a, b)
      unsafe loops.split_pair(&first, &second, z, 0.3, 0.7, count)
      #expect(bits(first) == bits(logs(a).map { 0.3 * $0 - 0.7 }))
      #expect(bits(second) == bits(logs(b).map { 0.3 * $0 - 0.7 }))
    }
  }

  @Test(arguments: counts) func singleRows(count: Int) {
    var numbers = Numbers(count)
    let a = numbers.uniform(count), b = numbers.uniform(count), bias = numbers.uniform(count, 0...2)
    let gamma = numbers.powers(count, -30, 14), inverse = numbers.powers(count, -5, 5)
    withEachSet { loops in
      var out = gamma
      unsafe loops.posterior(&out, inverse, bias, 1e4, count)
      #expect(bits(out) == bits((0..<count).map { PlainLoops.smaller(1e4, gamma[$0] * inverse[$0] + bias[$0]) }))
      out = a
      unsafe loops.add(&out, b, count)
      #expect(bits(out) == bits(zip(a, b).map { $0 + $1 }))
      let maximum = unsafe loops.maximum(a, count)
      #expect(maximum == a.max())
      let step = unsafe loops.largest_step(a, count - 1)
      #expect(step == zip(a, a.dropFirst()).map { abs($1 - $0) }.max() ?? 0)
    }
  }

  @Test(arguments: counts) func recursions(count: Int) {
    let rule = prior_rule(least: 0.01, memory: 0.985, novelty: 0.015)
    var numbers = Numbers(count)
    let old = numbers.uniform(count), new = numbers.uniform(count), memory = numbers.uniform(count, 0...1)
    let prior = numbers.powers(count, -8, 13)
    let left = numbers.powers(count, -30, 14), entered = numbers.powers(count, -30, 14)
    withEachSet { loops in
      var out = old
      unsafe loops.follow(&out, old, new, memory, count)
      #expect(bits(out) == bits((0..<count).map { new[$0] + memory[$0] * (old[$0] - new[$0]) }))
      unsafe loops.follow_evenly(&out, old, new, 0.2, count)
      #expect(bits(out) == bits(zip(old, new).map { $1 + 0.2 * ($0 - $1) }))
      unsafe loops.advance_prior(&out, prior, left, entered, rule, count)
      let expected = (0..<count).map {
        PlainLoops.advance(prior: prior[$0], left: left[$0], entered: entered[$0], rule)
      }
      #expect(bits(out) == bits(expected))
    }
  }

  @Test(arguments: counts) func noiseThatChanges(count: Int) {
    let rule = tracking_rule(odds: 32.6, slope: -1.4, memory: 0.86, least: 0.01, silence: 1e-6)
    var numbers = Numbers(count)
    let level = numbers.powers(count, -6, 13), presence = numbers.uniform(count, 0.9...1)
    let a = numbers.powers(count, -30, 14), b = numbers.powers(count, -30, 14)
    let novelty = numbers.uniform(count, 0...0.4), octaves = numbers.uniform(count, -70...70)
    let expected = (0..<count).map {
      PlainLoops.followNoise(
        level: level[$0], presence: presence[$0], power: 0.5 * (a[$0] + b[$0]), novelty: novelty[$0], rule)
    }
    withEachSet { loops in
      var (levels, presences) = (level, presence)
      unsafe loops.follow_noise(&levels, level, &presences, a, b, novelty, rule, count)
      #expect(bits(levels) == bits(expected.map(\.level)))
      #expect(bits(presences) == bits(expected.map(\.presence)))
      (levels, presences) = (level, presence)
      unsafe levels.withUnsafeMutableBufferPointer { levels in
        guard let start = levels.baseAddress else { return }
        unsafe loops.follow_noise(start, start, &presences, a, b, novelty, rule, count)
      }
      #expect(bits(levels) == bits(expected.map(\.level)), "in place")
      var out = a
      unsafe loops.mean_octaves(&out, level, count)
      #expect(bits(out) == bits(zip(a, level).map { PlainLoops.meanOctaves($0, $1) }))
      unsafe loops.rescale(&out, a, octaves, 1e4, count)
      let rescaled = zip(a, octaves).map {
        PlainLoops.smaller(1e4, $0 * PlainLoops.exp2(PlainLoops.smaller(60, PlainLoops.larger(-60, -$1))))
      }
      #expect(bits(out) == bits(rescaled))
    }
  }

  @Test(arguments: counts) func bandsAreSpread(count: Int) {
    var numbers = Numbers(count)
    let ends = stride(from: 1, to: count, by: 7).map { Int32($0) } + [Int32(count), Int32(count)]
    let values = numbers.uniform(ends.count, -20...20), shares = numbers.uniform(count, 0...1)
    withEachSet { loops in
      var out = shares
      unsafe loops.spread_bands(&out, shares, values, ends, ends.count)
      #expect(bits(out) == bits(PlainLoops.spreadBands(values, shares: shares, ends: ends)))
    }
  }

  @Test(arguments: counts) func gains(count: Int) {
    var numbers = Numbers(count)
    let forward = numbers.powers(count, -8, 13), backward = numbers.powers(count, -8, 13)
    let cepstral = numbers.uniform(count, -9...12), gamma = numbers.powers(count, -40, 13)
    let floor = numbers.uniform(count, 0...0.2)
    let priors = (0..<count).map {
      PlainLoops.joined(forward: forward[$0], backward: backward[$0], cepstral: cepstral[$0], share: 0.4, least: 0.01)
    }
    let amplitudes = (0..<count).map {
      PlainLoops.larger(floor[$0], PlainLoops.amplitudeGain(prior: priors[$0], posterior: gamma[$0]))
    }
    withEachSet { loops in
      var out = forward
      unsafe loops.amplitude_gain(&out, backward, cepstral, gamma, floor, 0.4, 0.01, count)
      #expect(bits(out) == bits(amplitudes))
      out = forward
      unsafe loops.wiener_gain(&out, backward, cepstral, gamma, floor, 0.4, 0.01, count)
      #expect(bits(out) == bits((0..<count).map { PlainLoops.larger(floor[$0], priors[$0] / (1 + priors[$0])) }))
    }
  }

  @Test(arguments: counts) func hiss(count: Int) {
    var numbers = Numbers(count)
    let forward = numbers.powers(count, -8, 2), backward = numbers.powers(count, -8, 2)
    let floor = numbers.uniform(count, 0...0.2), gain = floor.map { $0 + 0.7 }
    let rule = gate_rule(least: 9, slope: 0.2, share: 0.8)
    let sums = PlainLoops.bandSums(forward, backward)
    let drawn = (0..<count).map {
      PlainLoops.drawn(gain[$0], floor: floor[$0], band: sums[$0] + sums[$0 + 16], rule)
    }
    withEachSet { loops in
      var found = [Float](repeating: 7, count: count + 31), out = gain
      unsafe loops.band_sums(&found, forward, backward, count)
      #expect(bits(Array(found[..<(count + 16)])) == bits(sums))
      unsafe loops.draw_to_floor(&out, floor, found, rule, count)
      #expect(bits(out) == bits(drawn))
    }
  }

  @Test(arguments: [1, 2, 3, 8]) func channels(channels: Int) {
    for count in [1, 17, 1025] {
      var numbers = Numbers(channels)
      var all = numbers.uniform(count * channels, -2...2)
      all[0] = .nan
      all[all.count / 2] = -.infinity
      let distance = count + 5, limited = all.map { PlainLoops.limited($0, 1.5) }
      withEachSet { loops in
        var lanes = [Float](repeating: 7, count: channels * distance), back = all
        for channel in 0..<channels {
          var lane = [Float](repeating: 7, count: count)
          unsafe loops.deinterleave(&lane, Array(all[channel...]), channels, 1.5, count)
          for index in 0..<count { lanes[channel * distance + index] = lane[index] }
        }
        unsafe loops.interleave(&back, lanes, distance, channels, count)
        #expect(bits(back) == bits(limited))
      }
    }
  }

  @Test(arguments: [(8, true), (16, true), (16, false), (24, false)])
  func requantizing(depth: Int, isDithered: Bool) {
    let count = 1025, scale = Float(1 << (depth - 1)), dither = isDithered ? Float(1) / 65_536 : 0
    var numbers = Numbers(depth)
    var cleaned = numbers.uniform(count, -1.1...1.1), original = cleaned
    for index in stride(from: 0, to: count, by: 7) {
      cleaned[index] = Float(index % 5 - 2) * 0.3 / scale
      original[index] = index.isMultiple(of: 2) ? 0 : 0.1
    }
    // Numbers wrap around in a long recording.
    let first = UInt32.max - 500
    let expected = (0..<count).map {
      PlainLoops.requantised(
        cleaned[$0], original: original[$0], number: first &+ UInt32($0), scale: scale, dither: dither)
    }
    let samples = cleaned, sources = original
    withEachSet { loops in
      var out = samples
      let clipped = unsafe loops.requantise(&out, samples, sources, first, scale, dither, count)
      #expect(out == expected.map(\.sample))
      #expect(clipped == expected.count { $0.isClipped })
    }
  }
}
