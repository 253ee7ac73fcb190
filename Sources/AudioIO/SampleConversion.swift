// Between floating point at full scale ±1 and integers.
//
//   Int16 from float   the nearest of x · 32768, clamped to −32768 … 32767; NaN and infinity become 0.
//   Int n from float   the nearest of x · 2^(n−1), clamped; written left-justified in 32 bits, as libsndfile takes it.
//
// Rounding adds 1.5 · 2^23 (1.5 · 2^52 for Double), which leaves the nearest integer, ties to even, in the low bits of
// the mantissa: baseline x86-64 has no rounding instruction, and a call to `rintf` per sample takes ten times as long.

/// The nearest 16-bit value of a sample of full scale ±1; 0 where it is not a finite number.
public func quantised16(_ sample: Float) -> Int16 {
  let scaled = sample.isFinite ? sample * 32768 : 0
  let clamped = min(max(scaled, -32768), 32767)
  return Int16(truncatingIfNeeded: (clamped + 12_582_912).bitPattern)
}

/// Quantises `count` samples; returns how many of them were not finite.
func quantise16(_ source: Span<Float>, into target: inout MutableSpan<Int16>) -> Int {
  precondition(target.count >= source.count, "target too small")
  var notFinite: Int32 = 0
  for index in source.indices {
    notFinite &+= source[index].isFinite ? 0 : 1
    target[index] = quantised16(source[index])
  }
  return Int(notFinite)
}

/// The nearest value of `bits` significant bits, left-justified in 32; 0 where the sample is not a finite number.
func quantisedLeftJustified(_ sample: Float, bits: Int) -> Int32 {
  let scale = Double(Int64(1) << Int64(bits - 1))
  let scaled = sample.isFinite ? Double(sample) * scale : 0
  let clamped = min(max(scaled, -scale), scale - 1)
  let value = Int32(truncatingIfNeeded: (clamped + 6_755_399_441_055_744).bitPattern)
  return value << Int32(32 - bits)
}
