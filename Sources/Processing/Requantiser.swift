import AudioIO
import CKernels
import Terms

// Converts a cleaned sample for a format with few bits:
//
//   q = round(x · 2^(b−1) + d) / 2^(b−1), held to full scale        b: bits, up to 24
//
// d is dither with a triangular distribution, ±1 step, at 8 and 16 bits, where lost bits are audible. Without it, noise
// reduced below a step would come out as gaps and crackle. It's derived from the sample's number in the recording, so
// that a window, a repetition, and any division of the work produce the same bits. No dither is added if nothing was
// changed (a reduction of 0 dB), nor to digital silence: where the original is 0 and the cleaned sample rounds to 0.
//
// The residue is the original minus q, so that the removed and the remaining parts add up to the original exactly.
//
// The loop is `requantise` in CKernels, which gives the same bits on every processor.

/// Converts cleaned samples to the values that a format can hold, or to their difference from the original.
struct Requantiser {
  private let scale: Float
  private let isDithered: Bool
  private let isResidue: Bool
  /// The number of samples beyond full scale.
  private(set) var clippedSamples: Int64 = 0

  /// - Parameters:
  ///   - kind: of the file to write. Floats, lossy codecs, and more than 24 bits are left unchanged.
  ///   - changesNothing: whether to leave out dither.
  ///   - isResidue: whether to return the difference from the original.
  init(_ kind: SampleKind, changesNothing: Bool, isResidue: Bool) {
    if case .integer(let bits) = kind, bits <= 24 {
      scale = Float(1 << (bits - 1))
      isDithered = bits <= 16 && !changesNothing
    } else {
      (scale, isDithered) = (0, false)
    }
    self.isResidue = isResidue
  }

  /// - Parameters:
  ///   - cleaned: samples of any number of frames.
  ///   - original: the original samples of the same frames.
  ///   - number: number of the first sample in the recording, counting all channels.
  ///   - target: receives the samples to write.
  mutating func apply(
    _ cleaned: Span<Float>, original: Span<Float>, number: Int64, into target: inout MutableSpan<Float>
  ) {
    let count = cleaned.count
    precondition(original.count == count && target.count == count, "a sample of the original for each cleaned one")
    if scale > 0 {
      quantise(cleaned, original, UInt32(truncatingIfNeeded: number), &target)
    } else {
      for index in 0..<count { target[index] = cleaned[index] }
    }
    if isResidue {
      for index in 0..<count { target[index] = original[index] - target[index] }
    }
  }

  private mutating func quantise(
    _ cleaned: Span<Float>, _ original: Span<Float>, _ number: UInt32, _ target: inout MutableSpan<Float>
  ) {
    let (scale, dither, count) = (scale, isDithered ? Float(1) / 65_536 : 0, target.count)
    let clipped = unsafe target.withUnsafeMutableBufferPointer { target in
      unsafe cleaned.withUnsafeBufferPointer { cleaned in
        unsafe original.withUnsafeBufferPointer { original in
          guard let to = target.baseAddress, let from = cleaned.baseAddress, let before = original.baseAddress else {
            return 0
          }
          return unsafe Self.loops.requantise(to, from, before, number, scale, dither, count)
        }
      }
    }
    clippedSamples += Int64(clipped)
  }

  private static let loops = unsafe kernels_best().pointee
}
