import CKernels

/// The loops of CKernels for this processor. All of its instruction sets give the same bits.
let loops = unsafe kernels_best().pointee

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

  /// Computes a[n] b[n].
  @inline(__always)
  static func multiply(_ left: Span<Float>, _ right: Span<Float>, into result: inout MutableSpan<Float>) {
    let count = result.count
    precondition(left.count == count && right.count == count)
    for index in 0..<count { result[index] = left[index] * right[index] }
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
}
