import Glibc

// The a-priori SNR as speech shapes it: smooth over frequency except for the harmonics of a voice, and slow in its
// details.
//
//   l[t,k] = log2 max(γ[t,k] − 1, ξmin)                       the SNR from this bin alone
//   c[t,q] = 1/N Σk l[t,k] cos 2πkq/N                         its cepstrum, over k = 0 ..< N with l[t,N−k] = l[t,k]
//   f[t,q] = β f[t−1,q] + (1 − β) c[t,q]                      forward; b backward, with t + 1 for t − 1; 0 before the
//                                                             first
//   β      = 0.2^(hop / 12 ms) for q under 0.2 ms and around a voice's peak, 0.7 under 1.25 ms, 0.95 for the rest
//   log2 ξc[t,k] = Σq ½ (f + b)[t,q] cos 2πkq/N − 0.58
//
// The lowest quefrencies are the outline of the spectrum, which changes quickly in speech, so they are followed
// quickly. Differences between bins at the other quefrencies are chance unless they persist or form the comb of a
// voice, which appears as a peak between 1/300 and 1/70 s that is higher than chance makes it. So in noise alone no
// single bin stands out, and in speech ξc rises in the bins that the noise had masked. The 0.58, or 1.7 dB, is how far
// the mean of the logarithms exceeds ξ if most of them are cut off at ξmin.
//
// After Breithaupt, Gerkmann & Martin, "A novel a priori SNR estimation approach based on selective cepstro-temporal
// smoothing", ICASSP 2008, who smooth only forward and use ξc as ξ. Here the future counts as much as the past, and ξ
// is two fifths ξc and three fifths decision-directed, in decibels.
//
// Measured as a model in double precision on the 40 clips with a floor of −25 dB (PESQ / STOI / SI-SDR / log kurtosis
// ratio; this variant has 1.889 / .8865 / 12.03 / .48; without ξc, 1.865 / .8778 / 11.86 / .55):
//
//   a third instead of two fifths                            1.887 / .8856 / 12.04 / .49
//   half, with ξmin −25 dB and 0.96, nothing subtracted      1.874 / .8874 / 12.01 / .53
//   a third, nothing subtracted, ξmin −15 dB in l, 0.92      1.852 / .8862 / 12.00 / .48
//   the same without a voice's peak                          1.844 / .8828 / 11.78 / .47
//   0.97 instead of 0.95, a third                            1.893 / .8855 / 12.03 / .47   (needs a longer context)
//   l of two frames taken together, half the transforms      1.885 / .8859 / 11.99 / .46
//
// At −18 dB, 1.835 / .8851 / 11.88 / .20 instead of 1.822 / .8766 / 11.70 / .21.
//
// Both sums are transforms of real, symmetric sequences, whose transforms are real too. So two frames are transformed
// at a time, one in the real part and one in the imaginary part.
struct CepstralPrior: Sendable {
  /// The share of ξc in ξ, in decibels.
  static let share: Float = 0.4
  /// Octaves subtracted from ξc.
  private static let excess: Float = 0.58
  /// Minimum height of a voice's peak, times the square root of the number of bins: with more bins, chance produces
  /// lower peaks.
  private static let peakHeight: Float = 7.2

  private let binCount: Int
  /// ξmin
  private let least: Float
  /// β of each quefrency.
  private let memory: [Float]
  /// β of a voice's peak.
  private let peakMemory: Float
  /// The quefrencies at which a voice's peak may be.
  private let pitches: Range<Int>
  /// The half-width of a peak.
  private let reach: Int
  private let leastPeak: Float

  init(frame: AnalysisFrame, sampleRate: Int, least: Float) {
    let perMillisecond = Double(sampleRate) / 1000, hops = Double(frame.hop) / Double(sampleRate) / 0.012
    func memory(_ perHop: Double) -> Float { Float(pow(perHop, hops)) }
    self.least = least
    binCount = frame.binCount
    self.memory = (0..<frame.binCount).map { quefrency in
      let milliseconds = Double(quefrency) / perMillisecond
      return memory(milliseconds < 0.2 ? 0.2 : milliseconds < 1.25 ? 0.7 : 0.95)
    }
    peakMemory = memory(0.2)
    let longest = min(Int(1000 / 70 * perMillisecond), frame.binCount - 2)
    pitches = min(Int(1000 / 300 * perMillisecond), longest)..<(longest + 1)
    reach = Int((0.125 * perMillisecond).rounded())
    leastPeak = Self.peakHeight / Float(frame.length / 2).squareRoot()
  }

  /// Computes c of a frame and the next one from their γ.
  func analyse(_ frame: Int64, _ rows: FrameRows, _ transform: PairTransform) {
    let (first, second) = unsafe (rows.cepstra[frame], rows.cepstra[frame + 1])
    unsafe loops.pair_logs(transform.input, rows.posterior[frame], rows.posterior[frame + 1], least, binCount)
    transform.run()
    unsafe loops.split_pair(first, second, transform.output, 1 / Float(transform.length), 0, binCount)
    unsafe first[binCount] = Float(peak(of: first))
    unsafe second[binCount] = Float(peak(of: second))
  }

  /// Writes log2 ξc of the frames in `segment`.
  /// - Parameter context: the frames of the segment and around it.
  func smooth(_ segment: Range<Int64>, context: Range<Int64>, _ rows: FrameRows, _ workspace: Workspace) {
    let logs = rows.logs, start = unsafe workspace.scratch[0]
    unsafe start.update(repeating: 0, count: binCount)
    var state = unsafe start
    for frame in context.lowerBound..<segment.upperBound {
      let next = unsafe segment.contains(frame) ? logs[frame] : start
      unsafe follow(rows.cepstra[frame], from: state, to: next)
      unsafe state = next
    }
    unsafe state = start
    unsafe state.update(repeating: 0, count: binCount)
    for frame in (segment.lowerBound..<context.upperBound).reversed() {
      unsafe follow(rows.cepstra[frame], from: state, to: state)
      guard segment.contains(frame) else { continue }
      unsafe loops.add(logs[frame], state, binCount)
      if frame.isMultiple(of: 2) || frame == segment.lowerBound { synthesise(frame, segment, logs, workspace) }
    }
  }

  /// Turns f + b of a frame, and of its partner if that is the next one, into log2 ξc.
  private func synthesise(_ frame: Int64, _ segment: Range<Int64>, _ logs: RowRing, _ workspace: Workspace) {
    let transform = workspace.transform
    let hasPartner = frame.isMultiple(of: 2) && frame + 1 < segment.upperBound
    let first = unsafe logs[frame], second = unsafe hasPartner ? logs[frame + 1] : first
    unsafe loops.pair_rows(transform.input, first, second, binCount)
    transform.run()
    let unused = unsafe workspace.scratch[1]
    unsafe loops.split_pair(first, hasPartner ? second : unused, transform.output, 0.5, Self.excess, binCount)
  }

  /// Advances f or b to a frame from its neighbor. `new` may be `old`.
  private func follow(_ cepstrum: Row, from old: Row, to new: Row) {
    let peak = unsafe Int(cepstrum[binCount])
    let start = peak > 0 ? max(0, peak - reach) : binCount, end = peak > 0 ? min(binCount, peak + reach + 1) : binCount
    unsafe memory.withUnsafeBufferPointer { memory in
      guard let memory = memory.baseAddress else { return }
      unsafe loops.follow(new, old, cepstrum, memory, start)
      unsafe loops.follow_evenly(new + start, old + start, cepstrum + start, peakMemory, end - start)
      unsafe loops.follow(new + end, old + end, cepstrum + end, memory + end, binCount - end)
    }
  }

  /// Returns the quefrency at which a voice has its peak, or 0 if there is none.
  private func peak(of cepstrum: Row) -> Int {
    let highest = unsafe loops.maximum(cepstrum + pitches.lowerBound, pitches.count)
    guard highest > leastPeak else { return 0 }
    return pitches.first { unsafe cepstrum[$0] == highest } ?? 0
  }
}
