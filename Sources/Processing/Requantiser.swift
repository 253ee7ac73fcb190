import AudioIO

// What a cleaned sample becomes before it is written to a format of few bits:
//
//   q = round(x · 2^(b−1) + d) / 2^(b−1), held to full scale        b: bits, up to 24
//
// d is dither of triangular distribution, ±1 step, where bits are lost that can be heard: at 8 and 16 bits. Without it
// noise that was turned down below a step would come out as gaps and crackle. It is made of the sample's number in the
// recording, so that a window, a repeat and any division of the work have the same bits. None is added where nothing
// was changed (a reduction of 0 dB) and none to digital silence: where the original is 0 and what is left rounds to 0.
//
// The residue is the original minus q, so that what was taken and what was left add up to the original exactly.

/// Turns cleaned samples into those that a format holds, or into what is missing from them to the original.
struct Requantiser {
  private let scale: Float
  private let isDithered: Bool
  private let isResidue: Bool
  /// Samples beyond full scale.
  private(set) var clippedSamples: Int64 = 0

  /// - Parameters:
  ///   - kind: of the file to write. Floats, lossy codecs and more than 24 bits are left as they are.
  ///   - changesNothing: where no dither is wanted.
  ///   - isResidue: whether the difference to the original is wanted.
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
  ///   - original: as many, of the same frames.
  ///   - number: of the first sample in the recording, all channels counted.
  ///   - target: gets what is to be written.
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
    let (scale, inverse, dither) = (scale, 1 / scale, isDithered ? Float(1) / 65_536 : 0)
    let count = target.count
    precondition(cleaned.count == count && original.count == count)
    var clipped: Int32 = 0
    for index in 0..<count {
      let exact = cleaned[index] * scale
      clipped &+= exact.magnitude > scale ? 1 : 0
      let isSilent = original[index] == 0 && exact.magnitude < 0.5
      let noise = isSilent ? 0 : dither * Self.triangle(number &+ UInt32(truncatingIfNeeded: index))
      target[index] = min(scale - 1, Self.rounded(max(-scale, min(scale, exact + noise)))) * inverse
    }
    clippedSamples += Int64(clipped)
  }

  /// The nearest whole number, ties to even, of a number within ±2²³: adding 2²³ leaves no place for a fraction.
  /// Baseline x86-64 has no rounding instruction, and the library's function, a call for each sample, keeps the loop
  /// from becoming vectors.
  @inline(__always)
  private static func rounded(_ value: Float) -> Float {
    let magnitude = (value.magnitude + 8_388_608) - 8_388_608
    return Float(bitPattern: magnitude.bitPattern | value.bitPattern & 0x8000_0000)
  }

  /// −65 536 … 65 534, the sum of two uniform numbers, drawn by the finalizer of MurmurHash3.
  @inline(__always)
  static func triangle(_ number: UInt32) -> Float {
    var hash = number &+ 0x7f4a_7c15
    hash = (hash ^ hash &>> 16) &* 0x85eb_ca6b
    hash = (hash ^ hash &>> 13) &* 0xc2b2_ae35
    hash ^= hash &>> 16
    return Float(Int32(hash & 0xffff) &+ Int32(hash &>> 16) &- 65_536)
  }
}
