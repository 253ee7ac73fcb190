// Conversion between floating point with full scale ±1 and integers.
//
//   Int16 from float   x · 32768 rounded to nearest, clamped to −32768 … 32767; NaN and infinity become 0.
//   Int n from float   x · 2^(n−1) rounded to nearest, clamped; left-justified in 32 bits, as libsndfile expects.
//   Float from Int16   x / 32768
//   Float from Double  a Double between two Floats becomes the one with the odd bit pattern, so that it rounds to
//                      the same integer; finite values stay finite.
//
// Rounding adds 1.5 · 2^23 (1.5 · 2^52 for Double), which leaves the nearest integer, ties to even, in the low bits of
// the mantissa. Baseline x86-64 has no rounding instruction, and calling `rintf` per sample takes ten times as long.
//
// Batches of samples take 0.31 ns each instead of 0.60: 1.5 · 2^8 is added to the sample itself, which leaves the same
// bits without a multiplication, and finiteness is checked once per batch (x − x is 0 for finite x and NaN otherwise,
// and NaN persists in the sum).

/// Returns the nearest 16-bit value of a sample with full scale ±1, or 0 if it isn't finite.
package func quantised16(_ sample: Float) -> Int16 {
  let scaled = sample.isFinite ? sample * 32768 : 0
  let clamped = min(max(scaled, -32768), 32767)
  return Int16(truncatingIfNeeded: (clamped + 12_582_912).bitPattern)
}

/// Replaces `target` with the nearest 16-bit values of samples with full scale ±1; returns how many weren't finite.
package func quantise16(_ source: Span<Float>, into target: inout [Int16]) -> Int {
  if target.count != source.count { target = [Int16](repeating: 0, count: source.count) }
  var span = target.mutableSpan
  return quantise16(source, into: &span)
}

/// Converts all samples of `source`; returns how many were not finite.
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

/// Converts 1024 samples. Returns false if one isn't finite; the output is then unusable.
@inline(__always)
private func quantiseFinite(_ source: Span<Float>, _ start: Int, into target: inout MutableSpan<Int16>) -> Bool {
  // Safe: any bytes are valid samples, and the spans check bounds.
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

/// The samples of a recording that exceed full scale, ±1.
package struct Excess: Sendable, Equatable {
  /// Their number, counting all channels.
  package private(set) var samples: Int64 = 0
  /// The greatest of their magnitudes.
  package private(set) var peak: Float = 0

  /// Creates an empty count.
  package init() {}

  /// Counts the finite samples among some.
  package mutating func count(_ samples: Span<Float>) {
    guard countBeyondFullScale(samples) > 0 else { return }
    for index in samples.indices where samples[index].magnitude > 1 && samples[index].isFinite {
      self.samples += 1
      peak = max(peak, samples[index].magnitude)
    }
  }

  mutating func add(_ other: Excess) { (samples, peak) = (samples + other.samples, max(peak, other.peak)) }
}

/// Returns how many samples exceed full scale, including infinity.
func countBeyondFullScale(_ samples: Span<Float>) -> Int64 {
  // Separate lanes, so that the compiler vectorizes the loop.
  var lanes = InlineArray<16, Int32>(repeating: 0)
  var start = 0
  while start + 16 <= samples.count {
    let group = samples.extracting(start..<(start + 16))
    for lane in 0..<16 { lanes[lane] &+= group[lane].magnitude > 1 ? 1 : 0 }
    start += 16
  }
  for index in start..<samples.count { lanes[0] &+= samples[index].magnitude > 1 ? 1 : 0 }
  var count: Int64 = 0
  for lane in 0..<16 { count += Int64(lanes[lane]) }
  return count
}

/// Converts 16-bit samples, exactly.
func convert(_ source: Span<Int16>, into target: inout MutableSpan<Float>) {
  let count = target.count
  precondition(source.count == count, "as many samples as there is room for")
  for index in 0..<count { target[index] = Float(source[index]) * (1 / 32768) }
}

/// Returns the nearest value with `bits` significant bits, left-justified in 32, or 0 if the sample isn't finite.
func quantisedLeftJustified(_ sample: Float, bits: Int) -> Int32 {
  let scale = Double(Int64(1) << Int64(bits - 1))
  let scaled = sample.isFinite ? Double(sample) * scale : 0
  let clamped = min(max(scaled, -scale), scale - 1)
  let value = Int32(truncatingIfNeeded: (clamped + 6_755_399_441_055_744).bitPattern)
  return value << Int32(32 - bits)
}

/// Returns a Float that rounds to the same integers as `sample`. NaN and infinity stay as they are.
func narrowed(_ sample: Double) -> Float {
  let nearest = Float(sample)
  if Double(nearest) == sample { return nearest }
  let towardZero = Double(nearest.magnitude) > sample.magnitude ? nearest.bitPattern - 1 : nearest.bitPattern
  return Float(bitPattern: towardZero | 1)
}
