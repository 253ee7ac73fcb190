import CEBUR128
import Terms

// Integrated loudness (ITU-R BS.1770-4), loudness range (EBU Tech 3342), and true peak, measured by libebur128.
//
// Channels are weighted by their positions, which follow from their number as in WAV's order:
//
//   1 center · 2 left, right · 3 center added · 4 left, right, two surround · 5 left, right, center, two surround
//   6 the same with low frequencies, which don't count, as the fourth · 7 left, right, center, low frequencies, back
//   center, two side · 8 left, right, center, low frequencies, two back, two side
//
// Surround and side channels count 1.41 times, all others once (BS.1770-4, table 3). More than 8 channels have no known
// positions, and each counts once.

/// Measures the loudness of a sound in one pass. Memory grows by about 200 bytes per second of sound. Use it from one
/// thread at a time.
@safe
package final class LoudnessMeter {
  private let state: UnsafeMutablePointer<ebur128_state>
  private let channels: Int
  private let sampleRate: Int
  private let measuresPeak: Bool
  /// Number of frames so far.
  private var frames: Int64 = 0

  /// Below this rate, in hertz, the filters of BS.1770 can't be computed: their corner is at 1,682 Hz.
  package static let minimumSampleRate = 4000
  /// The limits of libebur128.
  private static let (sampleRates, channelLimit) = (16...2_822_400, 64)

  /// nil if the sample rate or the number of channels is beyond what libebur128 supports: 16 Hz and 64 channels.
  /// - Parameter measuresPeak: whether to measure the true peak and the range too, which takes most of the time.
  package init?(sampleRate: Int, channels: Int, measuresPeak: Bool = true) {
    guard Self.sampleRates.contains(sampleRate), (1...Self.channelLimit).contains(channels) else { return nil }
    let mode =
      measuresPeak
      ? EBUR128_MODE_I.rawValue | EBUR128_MODE_LRA.rawValue | EBUR128_MODE_TRUE_PEAK.rawValue : EBUR128_MODE_I.rawValue
    guard let state = unsafe ebur128_init(UInt32(channels), UInt(sampleRate), Int32(mode)) else { return nil }
    for (number, position) in Self.positions(channels).enumerated() {
      unsafe _ = ebur128_set_channel(state, UInt32(number), Int32(position.rawValue))
    }
    unsafe self.state = state
    (self.channels, self.sampleRate, self.measuresPeak) = (channels, sampleRate, measuresPeak)
  }

  deinit {
    var state: UnsafeMutablePointer<ebur128_state>? = unsafe state
    unsafe ebur128_destroy(&state)
  }

  /// Appends interleaved samples of whole frames, full scale ±1, all finite.
  package func append(_ samples: Span<Float>) {
    let count = samples.count / channels
    frames += Int64(count)
    unsafe samples.withUnsafeBufferPointer { buffer in
      guard let base = buffer.baseAddress else { return }
      // Fails only if memory runs out.
      let failure = unsafe ebur128_add_frames_float(state, base, count)
      precondition(failure == EBUR128_SUCCESS.rawValue, "libebur128 failed: \(failure)")
    }
  }

  /// Returns the loudness of everything appended so far.
  package var loudness: MeasuredLoudness {
    let integrated = integrated
    var range: Double?
    if measuresPeak, integrated != nil, frames >= 3 * Int64(sampleRate) {
      var found = 0.0
      if unsafe ebur128_loudness_range(state, &found) == EBUR128_SUCCESS.rawValue, found.isFinite { range = found }
    }
    return MeasuredLoudness(integratedLufs: integrated, rangeLu: range, truePeakDbtp: truePeak)
  }

  /// The integrated loudness in LUFS; nil if there is none.
  package var integrated: Double? {
    guard sampleRate >= Self.minimumSampleRate else { return nil }
    var found = 0.0
    guard unsafe ebur128_loudness_global(state, &found) == EBUR128_SUCCESS.rawValue, found.isFinite else { return nil }
    return found
  }

  private var truePeak: Double? {
    guard measuresPeak else { return nil }
    let peak =
      (0..<channels).map { channel in
        var found = 0.0
        unsafe _ = ebur128_true_peak(state, UInt32(channel), &found)
        return found
      }.max() ?? 0
    return peak > 0 ? 20 * Decibels.log10(peak) : nil
  }

  private static func positions(_ channels: Int) -> [channel] {
    let (left, right, center) = (EBUR128_LEFT, EBUR128_RIGHT, EBUR128_CENTER)
    let surround = [EBUR128_LEFT_SURROUND, EBUR128_RIGHT_SURROUND]
    return switch channels {
    case 1: [left]
    case 2: [left, right]
    case 3: [left, right, center]
    case 4: [left, right] + surround
    case 5: [left, right, center] + surround
    case 6: [left, right, center, EBUR128_UNUSED] + surround
    case 7: [left, right, center, EBUR128_UNUSED, EBUR128_Mp180, EBUR128_Mp090, EBUR128_Mm090]
    case 8: [left, right, center, EBUR128_UNUSED, EBUR128_Mp135, EBUR128_Mm135, EBUR128_Mp090, EBUR128_Mm090]
    default: [channel](repeating: center, count: channels)
    }
  }
}
