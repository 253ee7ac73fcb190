import CFFTW
import Synchronization

/// FFTW's planner is not thread-safe, and neither is the destruction of a plan.
private let planner = Mutex(())

/// The transforms of one real length, forward and back, through FFTW in single precision.
///
/// Owns two aligned buffers and the plans over them; not to be used from two threads at once, while several may each
/// have one. Plans are made with `FFTW_ESTIMATE`: 3 ms for both, where `FFTW_MEASURE` takes 170–1100 ms at these
/// lengths and wins 1 µs of 5 per frame, which a job would earn back after some ten minutes of stereo. Above all an
/// estimate is the same in each process, so the same samples give the same bits in a job, its repeat and a preview.
@safe struct RealFFT: ~Copyable {
  /// Samples of a frame; even.
  let length: Int
  /// Complex values of a spectrum.
  let binCount: Int
  private let time: UnsafeMutablePointer<Float>
  private let spectrum: UnsafeMutablePointer<fftwf_complex>
  private let forwardPlan: fftwf_plan
  private let inversePlan: fftwf_plan

  /// Allocates and plans: about 3 ms at 48 kHz.
  init(length: Int) {
    precondition(length > 0 && length.isMultiple(of: 2), "the length of a transform is even")
    self.length = length
    binCount = length / 2 + 1
    guard
      let time = unsafe fftwf_alloc_real(length),
      let spectrum = unsafe fftwf_alloc_complex(length / 2 + 1)
    else { fatalError("no memory for a transform of \(length)") }
    var plans: (forward: fftwf_plan?, inverse: fftwf_plan?) = (nil, nil)
    planner.withLock { _ in
      unsafe plans.forward = fftwf_plan_dft_r2c_1d(Int32(length), time, spectrum, FFTW_ESTIMATE)
      unsafe plans.inverse = fftwf_plan_dft_c2r_1d(Int32(length), spectrum, time, FFTW_ESTIMATE)
    }
    guard let forward = unsafe plans.forward, let inverse = unsafe plans.inverse else {
      fatalError("no plan for a transform of \(length)")
    }
    unsafe self.time = time
    unsafe self.spectrum = spectrum
    unsafe forwardPlan = forward
    unsafe inversePlan = inverse
  }

  deinit {
    planner.withLock { _ in
      unsafe fftwf_destroy_plan(forwardPlan)
      unsafe fftwf_destroy_plan(inversePlan)
    }
    unsafe fftwf_free(time)
    unsafe fftwf_free(spectrum)
  }

  /// Σ x[n] exp(−2πi kn/N): `load` writes the `length` samples, `use` reads the spectrum, real and imaginary part in
  /// turn, `2 * binCount` values.
  @inline(__always)
  mutating func forward(_ load: (inout MutableSpan<Float>) -> Void, _ use: (Span<Float>) -> Void) {
    var samples = unsafe MutableSpan(_unsafeStart: time, count: length)
    load(&samples)
    unsafe fftwf_execute(forwardPlan)
    unsafe spectrum.withMemoryRebound(to: Float.self, capacity: 2 * binCount) {
      unsafe use(Span(_unsafeStart: $0, count: 2 * binCount))
    }
  }

  /// The way back, without the 1/N: `load` writes the spectrum, laid out as above, `use` reads `length` samples.
  @inline(__always)
  mutating func inverse(_ load: (inout MutableSpan<Float>) -> Void, _ use: (Span<Float>) -> Void) {
    unsafe spectrum.withMemoryRebound(to: Float.self, capacity: 2 * binCount) {
      var values = unsafe MutableSpan(_unsafeStart: $0, count: 2 * binCount)
      load(&values)
    }
    unsafe fftwf_execute(inversePlan)
    unsafe use(Span(_unsafeStart: time, count: length))
  }
}
