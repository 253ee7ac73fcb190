import Glibc
import Terms

// Finds the parts of a recording that contain only noise: those in which the level of every band is steady.
//
//   mix      sum over the channels and over D frames, so that D frames of the recording become one sample at 11 to
//            22 kHz. Neighboring channels count 5 : 3, so that a pair out of phase loses 12 dB and not everything.
//            Aliases from the sum count too: they vary with the sound and are steady with the noise.
//   frames   20 ms long, one every 30 ms, Hann window, power in 20 bands of equal ratio between 100 and 8000 Hz
//   L[t,b]   level of band b in frame t, in steps of 1/16 dB
//   S        mean over the bands of the standard deviation of L over a window of 1 s, or ½ s if that is clearly
//            steadier: it counts as 1.22 times its deviation
//   R        mean over the bands, their bins, and the window's frames of |log2 P − log2 P of the frame before|
//   F        mean over the frames and the bands of three bins or more of mean of log2 P − log2 of the mean of P
//   T        max(0, 1.85 − R) + max(0, −0.95 − F), in octaves: how tonal the window is; in the cost, less the least T
//   Q[b]     20 % quantile of L[t,b] over the recording's frames: mostly noise, wherever it is
//   D[b]     mean of L[t,b] over the window − Q[b]
//   M        how far D's median over the bands is below −6 dB
//   cost     S + 6 T + 0.05 · level of the window in dB + 0.3 · the excess over 10 dB above the quietest window with M
//            under 6 dB + 0.25 M
//
// Windows are compared by cost; those with S over 5 dB or T over 0.15 contain something other than noise. Of
// overlapping windows the best is kept, and an equally steady one that follows it extends it, up to 5 s. If there is
// none at all, the quietest second with S up to 6.5 dB is one if it's 4 dB quieter than the recording: a crowd's
// voices, or keys. Frames of digital silence (mean square within one 16-bit step, −90 dBFS, or the same value
// throughout) are excluded from all windows: a profile of silence would remove nothing.
//
// A held note is steadier than noise, but not as irregular: for noise, R is 1.9 to 2.4 and F −0.6 to −0.9; with hum R
// is 1.8. Of 42 made-up clips of voices, strings, pipes, keys, drums, birds, and speech after a second of twelve kinds
// of noise, and 17 others, 31 lost 2 to 21 dB with `auto` against that second as a marked region; with T and the next
// rule, two lose 2.4 and 2.6 dB, and the others less than 2.
//
// Of the first four windows, the loudest counts as the best if its score is within 0.2, it is 4 dB louder than the
// best, and it is louder in all bands (18 of 20), by 1.5 dB and by amounts within 8 dB: between the cars of a train or
// two gusts there is a steady half second whose noise isn't that of the rest. With `auto`, two clips of a train gain
// 0.56 and 0.45 PESQ, 1.2 and 3.4 dB of SI-SDR, and one of wind 0.26 and 4.6 dB. A choir, or strings in hum, are louder
// by amounts 14 dB apart. So is a fan that is switched on, but with R ≥ 1.92 and F ≥ −0.8 it is more irregular than a
// choir (1.89, −0.95), and may be. Hum is as irregular, but louder in few bands only: by less than 2 dB in half of
// them, and 2 dB quieter in two at most. A low string is louder by 3 dB and more in half of them.
//
// M is how badly a window represents the rest: the hiss before a microphone is switched on is steady and quiet.
// Windows that are louder than Q have no disadvantage, because Q is the noise where it's quietest: with 0.25 of the
// excess of D's upper quartile above 3 dB, a clip with a train loses 7 dB of SI-SDR.
//
// Noise changes for good if from some time on, or up to it, for 2 s at least, no moment is as quiet as the best window
// (6 dB above it), and a second there is a window (one, or two halves) that is louder in all bands: 5 dB in 18 of 20,
// 8 in half of them, and by amounts within 20 dB. Then the best window there is found too, and each has its span.
//
// Measured on 40 clips of speech in ten kinds of noise, each with 1.2 to 1.5 s of noise alone: S of the best window is
// 1.8 … 4.9, and its speech is always at least 12 dB below the noise. With those stretches cut out, which leaves only
// pauses between words, S is 3.8 ± 0.8 for a second of noise and 5.5 ± 1.7 for a second with speech. With a frame every
// 40 ms, the best half second of one clip contains speech 3 dB over the noise; with 80 ms, the best second of three
// clips.

/// Finds the parts of a recording that are best for a noise profile, in one pass.
///
/// Uses constant memory, up to 260 KB. The result depends only on the samples, not on the sizes of the pieces.
package struct NoiseRegionFinder: ~Copyable {
  /// Maximum number of regions returned.
  package static let regionLimit = 20

  /// The largest mean square of digital silence.
  static let silence = 1.0

  private var meter: NoiseMeter
  private var windows: SteadyWindows
  private let sampleRate: Int
  private let channels: Int
  /// Frames of the recording so far.
  private var total: Int64 = 0

  /// Creates a finder.
  /// - Parameters:
  ///   - sampleRate: in Hz, at least 1; below 2 kHz nothing is found.
  ///   - channels: at least 1.
  package init(sampleRate: Int, channels: Int) {
    meter = NoiseMeter(sampleRate: sampleRate, channels: channels)
    (self.sampleRate, self.channels) = (sampleRate, channels)
    windows = SteadyWindows(
      bandCount: meter.bandCount, framesPerSecond: Double(sampleRate) / Double(meter.cutter.framesPerHop))
  }

  /// Adds more of the recording.
  /// - Parameter samples: 16-bit interleaved whole frames.
  package mutating func append(_ samples: Span<Int16>) {
    total += Int64(samples.count / channels)
    Self.measure(samples, with: &meter, into: &windows)
  }

  private static func measure(
    _ samples: Span<Int16>, with meter: inout NoiseMeter, into windows: inout SteadyWindows
  ) {
    meter.measure(samples) { windows.append($0) }
  }

  /// Adds the next part of the recording, measured by a `NoiseMeter` that began where the recording so far ends.
  package mutating func append(_ frames: NoiseFrames) {
    for frame in meter.follow(frames) { windows.append(frame) }
    total = frames.end
  }

  /// Returns the regions, best first; they don't overlap.
  package consuming func finish() -> [NoiseRegion] { regions }

  /// The regions of the recording so far.
  var regions: [NoiseRegion] {
    let (hop, total, sampleRate) = (Int64(meter.cutter.framesPerHop), total, sampleRate)
    // The last mixed frame may end before its hop does, where the recording ends.
    func place(_ frames: Range<Int>) -> Range<Int64> {
      (Int64(frames.lowerBound) * hop)..<min(Int64(frames.upperBound) * hop, total)
    }
    return windows.finish(limit: Self.regionLimit).map { window, score in
      NoiseRegion(
        place(window.frames), sampleRate: sampleRate,
        level: rounded(window.levelDB - 20 * log10(32768), to: 10), score: rounded(score, to: 100),
        span: window.span.map(place))
    }
  }
}

private func rounded(_ value: Double, to steps: Double) -> Double { (value * steps).rounded() / steps }
