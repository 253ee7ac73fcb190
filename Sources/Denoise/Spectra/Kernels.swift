/// Loops over samples and bins. Each first asserts that its spans have the same length, which lets the compiler drop
/// the bounds checks and vectorize.
enum Kernels {
  /// Returns √x for finite x from 0 to 1e30, with a relative error within 1e−6. Takes two steps toward 1/√x: the first
  /// with constants optimized for the initial guess, the second Newton's.
  ///
  /// `squareRoot()` may set errno on Linux, which keeps the loop around it from vectorizing.
  @inline(__always)
  static func squareRoot(_ x: Float) -> Float {
    var inverse = Float(bitPattern: 0x5f1f_fff9 &- x.bitPattern &>> 1)
    inverse *= 0.703_952_25 * (2.389_244_6 - x * inverse * inverse)
    inverse *= 1.5 - 0.5 * x * inverse * inverse
    return x * inverse
  }

  /// Returns the larger of two numbers. `max` distinguishes 0 from −0, which takes three instructions instead of one.
  @inline(__always)
  static func larger(_ a: Float, _ b: Float) -> Float { a > b ? a : b }

  /// Returns the smaller of two numbers.
  @inline(__always)
  static func smaller(_ a: Float, _ b: Float) -> Float { a < b ? a : b }

  /// Returns log2 x for positive, normal x, within 3e−6.
  @inline(__always)
  static func log2(_ x: Float) -> Float {
    let exponent = Float(Int32(truncatingIfNeeded: x.bitPattern &>> 23) &- 127)
    let t = Float(bitPattern: x.bitPattern & 0x007f_ffff | 0x3f80_0000) - 1
    // log2 (1 + t) = t + t (1 − t) p(t), with p fitted for the smallest error over 0 ≤ t < 1. This has no step between
    // octaves.
    let low = 0.442_544_23 - t * 0.275_593_09
    let high = 0.181_925_09 - t * (0.095_925_05 - t * 0.025_827_01)
    return exponent + (t + t * (1 - t) * (low + t * t * high))
  }

  /// Returns 2^x for x from −100 to 100, with a relative error within 4e−6.
  @inline(__always)
  static func exp2(_ x: Float) -> Float {
    // Adding 1.5 · 2^23 rounds to an integer, which is then in the lowest bits.
    let shifted = x + 12_582_912
    let t = x - (shifted - 12_582_912)
    // Fitted for the smallest relative error over −½ ≤ t ≤ ½.
    let power = 1 + t * (0.693_124_41 + t * (0.240_241_53 + t * (0.055_905_81 + t * 0.009_580_83)))
    return Float(bitPattern: power.bitPattern &+ shifted.bitPattern &<< 23)
  }

  /// Returns the maximum of finite values, or −∞ if there are none.
  static func maximum(of values: Span<Float>) -> Float {
    var lanes = InlineArray<16, Float>(repeating: -.infinity)
    var start = 0
    while start + 16 <= values.count {
      let part = values.extracting(start..<(start + 16))
      for lane in 0..<16 { lanes[lane] = larger(part[lane], lanes[lane]) }
      start += 16
    }
    var greatest = -Float.infinity
    for lane in 0..<16 { greatest = max(greatest, lanes[lane]) }
    for index in start..<values.count { greatest = max(greatest, values[index]) }
    return greatest
  }

  /// Computes a[n] b[n].
  @inline(__always)
  static func multiply(_ left: Span<Float>, _ right: Span<Float>, into result: inout MutableSpan<Float>) {
    let count = result.count
    precondition(left.count == count && right.count == count)
    for index in 0..<count { result[index] = left[index] * right[index] }
  }

  /// Computes sum[n] + a[n] b[n].
  @inline(__always)
  static func addProduct(_ left: Span<Float>, _ right: Span<Float>, to sum: inout MutableSpan<Float>) {
    let count = sum.count
    precondition(left.count == count && right.count == count)
    for index in 0..<count { sum[index] += left[index] * right[index] }
  }

  /// Computes |X[k]|² of a spectrum with alternating real and imaginary parts.
  @inline(__always)
  static func power(of spectrum: Span<Float>, into power: inout MutableSpan<Float>) {
    let count = power.count
    precondition(spectrum.count == 2 * count)
    for bin in 0..<count {
      let real = spectrum[2 * bin], imaginary = spectrum[2 * bin + 1]
      power[bin] = real * real + imaginary * imaginary
    }
  }

  /// Adds |X[k]|² to the sum over other channels.
  @inline(__always)
  static func addPower(of spectrum: Span<Float>, to power: inout MutableSpan<Float>) {
    let count = power.count
    precondition(spectrum.count == 2 * count)
    for bin in 0..<count {
      let real = spectrum[2 * bin], imaginary = spectrum[2 * bin + 1]
      power[bin] += real * real + imaginary * imaginary
    }
  }

  @inline(__always)
  static func copy(_ source: Span<Float>, into target: inout MutableSpan<Float>) {
    let count = target.count
    precondition(source.count == count)
    for index in 0..<count { target[index] = source[index] }
  }

  /// Sets everything to 0.
  static func clear(_ samples: inout [Float]) {
    var all = samples.mutableSpan
    let count = all.count
    for index in 0..<count { all[index] = 0 }
  }

  /// Writes one channel's samples into interleaved sound.
  @inline(__always)
  static func interleave(_ lane: Span<Float>, as channel: Int, of channels: Int, into all: inout MutableSpan<Float>) {
    let count = lane.count
    precondition(all.count == count * channels && channel < channels)
    for index in 0..<count { all[index * channels + channel] = lane[index] }
  }

  /// Extracts one channel's samples from interleaved sound, limited as described in FrameCutter.swift.
  @inline(__always)
  static func deinterleave(
    _ all: Span<Float>, channel: Int, of channels: Int, into lane: inout MutableSpan<Float>
  ) {
    let count = lane.count
    precondition(all.count == count * channels && channel < channels)
    for index in 0..<count { lane[index] = FrameCutter.limited(all[index * channels + channel]) }
  }

  /// Computes G[k] X[k].
  @inline(__always)
  static func apply(_ gain: Span<Float>, to spectrum: Span<Float>, into result: inout MutableSpan<Float>) {
    let count = gain.count
    precondition(spectrum.count == 2 * count && result.count == 2 * count)
    for bin in 0..<count {
      result[2 * bin] = gain[bin] * spectrum[2 * bin]
      result[2 * bin + 1] = gain[bin] * spectrum[2 * bin + 1]
    }
  }

  /// Computes 1 − G[k]. Because the transforms are linear, the sound that this lets through and that of G add up to the
  /// original.
  static func complement(_ gains: inout [Float]) {
    for index in gains.indices { gains[index] = 1 - gains[index] }
  }
}
