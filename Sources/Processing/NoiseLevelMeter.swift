import Glibc
import Terms

// The noise before and after cleaning is the RMS level of the recording and of the cleaned sound in the same blocks of
// 50 ms: those of the regions that the noise was learned from, or, if there is none, the quietest ones of the
// recording, as many as the learned quantile, or the usual one for a profile. Blocks of digital silence don't count.

/// Measures how loud the noise is before and after it's removed. Memory grows by 160 bytes per second of sound.
struct NoiseLevelMeter {
  /// The blocks of the regions, at least one each.
  private let regions: [Range<Int>]
  private let quantile: Double
  private let blockFrames: Int
  private let channels: Int
  /// The sums of the squares of all samples of each block.
  private var before: [Float] = []
  private var after: [Float] = []
  private var sums: (before: Float, after: Float) = (0, 0)
  private var filled = 0

  init(_ noise: NoiseSource, sampleRate: Int, channels: Int) {
    blockFrames = max(sampleRate / 20, 1)
    self.channels = channels
    let block = Int64(blockFrames)
    regions = noise.regions.map { region in
      let frames = Range(start: region.start, end: region.end, sampleRate: sampleRate)
      let first = Int(frames.lowerBound / block)
      return first..<max(Int(frames.upperBound / block), first + 1)
    }
    if case .quantile(let quantile) = noise { self.quantile = quantile } else { quantile = NoiseSource.usualQuantile }
  }

  /// Appends the next frames of both sounds, interleaved.
  mutating func append(_ original: Span<Float>, _ cleaned: Span<Float>) {
    var start = 0
    while start < original.count {
      let count = min((blockFrames - filled) * channels, original.count - start)
      sums.before += energy(original.extracting(start..<start + count))
      sums.after += energy(cleaned.extracting(start..<start + count))
      filled += count / channels
      start += count
      if filled == blockFrames { close() }
    }
  }

  private mutating func close() {
    before.append(sums.before)
    after.append(sums.after)
    (sums, filled) = ((0, 0), 0)
  }

  private func energy(_ samples: Span<Float>) -> Float {
    // A loop over an array of lanes isn't vectorized, and would take 7 % of the time of a whole cleaning.
    var lanes = SIMD16<Float>.zero
    let whole = samples.count / 16 * 16
    unsafe samples.withUnsafeBytes { bytes in
      for start in stride(from: 0, to: whole, by: 16) {
        let values = unsafe bytes.loadUnaligned(fromByteOffset: 4 * start, as: SIMD16<Float>.self)
        lanes += values * values
      }
    }
    for index in whole..<samples.count { lanes[0] += samples[index] * samples[index] }
    var sum: Float = 0
    for lane in 0..<16 { sum += lanes[lane] }
    return sum
  }

  /// The levels. A last block that isn't full counts only if there is no other.
  var levels: NoiseLevels {
    var all = self
    if all.before.isEmpty, filled > 0 { all.close() }
    let blocks = all.chosen
    guard !blocks.isEmpty else { return NoiseLevels(before: nil, after: nil) }
    let samples = Double(blocks.count * blockFrames * channels)
    func level(_ sums: [Float]) -> Double? {
      let power = blocks.reduce(0) { $0 + Double(sums[$1]) } / samples
      // Less than a thousandth of a 24-bit step is nothing, and the squares of the largest floats have no finite sum.
      return power > 1e-20 && power.isFinite ? 10 * log10(power) : nil
    }
    return NoiseLevels(before: level(all.before), after: level(all.after))
  }

  private var chosen: [Int] {
    guard regions.isEmpty else {
      return regions.flatMap { $0.clamped(to: before.indices) }.filter { before[$0] > 0 }
    }
    let audible = before.indices.filter { before[$0] > 0 }.sorted { before[$0] < before[$1] }
    return Array(audible.prefix(max(Int(quantile * Double(audible.count)), 1)))
  }
}
