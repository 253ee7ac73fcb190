/// Transforms two real frames at a time, or two rows of bins: the first is the real part of a complex sequence and the
/// second the imaginary part. CKernels/loops.h has the equations that separate them again.
///
/// Each thread has its own, because the buffers are part of it.
@safe final class PairTransform {
  /// Samples per frame, N.
  let length: Int
  private let buffers: RowRing
  private let forward: ComplexTransform
  private let backward: ComplexTransform

  init(length: Int) {
    self.length = length
    buffers = RowRing(width: 2 * length, count: 2)
    unsafe forward = ComplexTransform(length: length, isInverse: false, from: buffers[0], to: buffers[1])
    unsafe backward = ComplexTransform(length: length, isInverse: true, from: buffers[0], to: buffers[1])
  }

  /// What to transform: `2 * length` numbers, real and imaginary parts in turn.
  @unsafe var input: Row { unsafe buffers[0] }
  /// The result of `run()` and `invert()`, likewise.
  @unsafe var output: Row { unsafe buffers[1] }

  /// Computes the transform, not scaled, and stores it in `output`.
  func run() { unsafe forward.run(from: input, to: output) }

  /// Computes the transform, not scaled, and stores it in a row of a ring.
  @unsafe
  func run(into row: Row) { unsafe forward.run(from: input, to: row) }

  /// Computes the inverse, without the 1/N.
  func invert() { unsafe backward.run(from: input, to: output) }
}
