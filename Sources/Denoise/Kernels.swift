/// The loops over samples and bins. Each first states that its spans are of one length, which lets the compiler drop
/// the bounds checks and use vectors.
enum Kernels {
  /// √x for finite x from 0 to 1e30, within 3e−7 of itself; Newton's iteration on 1/√x.
  ///
  /// `squareRoot()` may set errno on Linux, which keeps a loop it stands in from becoming vectors.
  @inline(__always)
  static func squareRoot(_ x: Float) -> Float {
    var inverse = Float(bitPattern: 0x5f37_59df &- x.bitPattern &>> 1)
    let half = 0.5 * x
    for _ in 0..<3 { inverse *= 1.5 - half * inverse * inverse }
    return x * inverse
  }

  /// a[n] b[n]
  @inline(__always)
  static func multiply(_ left: Span<Float>, _ right: Span<Float>, into result: inout MutableSpan<Float>) {
    let count = result.count
    precondition(left.count == count && right.count == count)
    for index in 0..<count { result[index] = left[index] * right[index] }
  }

  /// sum[n] + a[n] b[n]
  @inline(__always)
  static func addProduct(_ left: Span<Float>, _ right: Span<Float>, to sum: inout MutableSpan<Float>) {
    let count = sum.count
    precondition(left.count == count && right.count == count)
    for index in 0..<count { sum[index] += left[index] * right[index] }
  }

  /// |X[k]|² of a spectrum of real and imaginary parts in turn.
  @inline(__always)
  static func power(of spectrum: Span<Float>, into power: inout MutableSpan<Float>) {
    let count = power.count
    precondition(spectrum.count == 2 * count)
    for bin in 0..<count {
      let real = spectrum[2 * bin], imaginary = spectrum[2 * bin + 1]
      power[bin] = real * real + imaginary * imaginary
    }
  }

  /// Adds |X[k]|² to what other channels gave.
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

  /// Puts 0 everywhere.
  static func clear(_ samples: inout [Float]) {
    var all = samples.mutableSpan
    let count = all.count
    for index in 0..<count { all[index] = 0 }
  }

  /// Puts one channel's samples in their places among those of all.
  @inline(__always)
  static func interleave(_ lane: Span<Float>, as channel: Int, of channels: Int, into all: inout MutableSpan<Float>) {
    let count = lane.count
    precondition(all.count == count * channels && channel < channels)
    for index in 0..<count { all[index * channels + channel] = lane[index] }
  }

  /// Takes one channel's samples, limited as FrameCutter.swift says, from among those of all.
  @inline(__always)
  static func deinterleave(
    _ all: Span<Float>, channel: Int, of channels: Int, into lane: inout MutableSpan<Float>
  ) {
    let count = lane.count
    precondition(all.count == count * channels && channel < channels)
    for index in 0..<count { lane[index] = FrameCutter.limited(all[index * channels + channel]) }
  }

  /// G[k] X[k]
  @inline(__always)
  static func apply(_ gain: Span<Float>, to spectrum: Span<Float>, into result: inout MutableSpan<Float>) {
    let count = gain.count
    precondition(spectrum.count == 2 * count && result.count == 2 * count)
    for bin in 0..<count {
      result[2 * bin] = gain[bin] * spectrum[2 * bin]
      result[2 * bin + 1] = gain[bin] * spectrum[2 * bin + 1]
    }
  }

  /// 1 − G[k]: as the transforms are linear, what this lets through and what G does add up to the original.
  static func complement(_ gains: inout [Float]) {
    for index in gains.indices { gains[index] = 1 - gains[index] }
  }
}
