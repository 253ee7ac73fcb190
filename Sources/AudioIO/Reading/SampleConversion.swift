// Between floating point at full scale ±1 and integers.
//
//   Int16 from float   the nearest of x · 32768, clamped to −32768 … 32767; NaN and infinity become 0.
//   Int n from float   the nearest of x · 2^(n−1), clamped; written left-justified in 32 bits, as libsndfile takes it.
//   Float from Double  what lies between two is given the odd one of them, so that the nearest integer of that is the
//                      nearest of the Double; what is finite stays finite.
//
// Rounding adds 1.5 · 2^23 (1.5 · 2^52 for Double), which leaves the nearest integer, ties to even, in the low bits of
// the mantissa: baseline x86-64 has no rounding instruction, and a call to `rintf` per sample takes ten times as long.
//
// Many samples at once take 0.31 ns each instead of 0.60: 1.5 · 2^8 is added to the sample itself, which leaves the
// same bits without a multiplication, and whether all of a run are finite is asked once (x − x is 0, or else NaN for
// ever).

/// The nearest 16-bit value of a sample of full scale ±1; 0 where it is not a finite number.
package func quantised16(_ sample: Float) -> Int16 {
  let scaled = sample.isFinite ? sample * 32768 : 0
  let clamped = min(max(scaled, -32768), 32767)
  return Int16(truncatingIfNeeded: (clamped + 12_582_912).bitPattern)
}

/// Quantises `count` samples; returns how many of them were not finite.
func quantise16(_ source: Span<Float>, into target: inout MutableSpan<Int16>) -> Int {
  precondition(target.count >= source.count, "target too small")
  var (notFinite, start) = (0, 0)
  while start < source.count {
    let end = min(start + 1024, source.count)
    if end - start < 1024 || !quantiseFinite(source, start, into: &target) {
      for index in start..<end {
        notFinite += source[index].isFinite ? 0 : 1
        target[index] = quantised16(source[index])
      }
    }
    start = end
  }
  return notFinite
}

/// Quantises 1024 samples; false where one is not finite, and what was written of no use.
@inline(__always)
private func quantiseFinite(_ source: Span<Float>, _ start: Int, into target: inout MutableSpan<Int16>) -> Bool {
  // Any bytes are samples, and the spans check their bounds.
  let samples = unsafe source.extracting(start..<start + 1024).bytes
  var bytes = unsafe target.mutableBytes
  var doubt = SIMD8<Float>(repeating: 0)
  for run in 0..<1024 / 8 {
    let eight = unsafe samples.unsafeLoadUnaligned(fromByteOffset: 32 * run, as: SIMD8<Float>.self)
    doubt += eight - eight
    var clamped = SIMD8<Float>(repeating: 32767 / 32768)
    clamped.replace(with: eight, where: eight .< clamped)
    clamped.replace(with: -1, where: clamped .< -1)
    let bits = unsafe unsafeBitCast(clamped + 384, to: SIMD8<UInt32>.self)
    bytes.storeBytes(
      of: SIMD8<Int16>(truncatingIfNeeded: bits), toByteOffset: 2 * start + 16 * run, as: SIMD8<Int16>.self)
  }
  return doubt == SIMD8(repeating: 0)
}

/// The nearest value of `bits` significant bits, left-justified in 32; 0 where the sample is not a finite number.
func quantisedLeftJustified(_ sample: Float, bits: Int) -> Int32 {
  let scale = Double(Int64(1) << Int64(bits - 1))
  let scaled = sample.isFinite ? Double(sample) * scale : 0
  let clamped = min(max(scaled, -scale), scale - 1)
  let value = Int32(truncatingIfNeeded: (clamped + 6_755_399_441_055_744).bitPattern)
  return value << Int32(32 - bits)
}

/// What rounds to the same integers as `sample` does; NaN and infinity stay what they are.
func narrowed(_ sample: Double) -> Float {
  let nearest = Float(sample)
  if Double(nearest) == sample { return nearest }
  let towardZero = Double(nearest.magnitude) > sample.magnitude ? nearest.bitPattern - 1 : nearest.bitPattern
  return Float(bitPattern: towardZero | 1)
}
