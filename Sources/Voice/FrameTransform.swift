import CFFTW
import Glibc
import Terms

// Frames of 20 ms at 48 kHz, every 10 ms, with Vorbis's window on both sides, so that they add up to the sound:
//
//   w[n] = sin(π/2 sin²(π (n + ½) / 960))        X[k] = 1/960 Σ w[n] x[n] exp(−2πi kn/960)

/// Spectra of frames and back, by FFTW. Not for two threads at once.
@safe final class FrameTransform {
  /// The rate of the networks in Hz, and samples of a frame and from one frame to the next.
  static let sampleRate = 48_000, length = 960, hop = 480
  /// The number of frames in a second, and of bins in a frame.
  static let framesPerSecond = 100, binCount = 481

  private static let window: [Float] = (0..<length).map { index in
    let sine = sin(Double.pi * (Double(index) + 0.5) / Double(length))
    return Float(sin(Double.pi / 2 * sine * sine))
  }

  private let time: UnsafeMutablePointer<Float>
  private let bins: UnsafeMutablePointer<Float>
  private let forward, inverse: fftwf_plan

  init() {
    let time = unsafe Self.row(Self.length), bins = unsafe Self.row(2 * Self.binCount)
    let complex = unsafe Self.complex(bins)
    var plans: (fftwf_plan?, fftwf_plan?)
    FFTWPlanner.lock.withLock { _ in
      unsafe plans.0 = fftwf_plan_dft_r2c_1d(Int32(Self.length), time, complex, FFTW_ESTIMATE)
      unsafe plans.1 = fftwf_plan_dft_c2r_1d(Int32(Self.length), complex, time, FFTW_ESTIMATE)
    }
    guard let forward = unsafe plans.0, let inverse = unsafe plans.1 else {
      fatalError("no plan for a transform of 960")
    }
    unsafe (self.time, self.bins, self.forward, self.inverse) = (time, bins, forward, inverse)
  }

  deinit {
    FFTWPlanner.lock.withLock { _ in
      unsafe fftwf_destroy_plan(forward)
      unsafe fftwf_destroy_plan(inverse)
    }
    unsafe fftwf_free(time)
    unsafe fftwf_free(bins)
  }

  private static func row(_ count: Int) -> UnsafeMutablePointer<Float> {
    guard let row = unsafe fftwf_alloc_real(count) else { fatalError("no memory for a transform") }
    return unsafe row
  }

  private static func complex(_ row: UnsafeMutablePointer<Float>) -> UnsafeMutablePointer<fftwf_complex> {
    unsafe UnsafeMutableRawPointer(row).assumingMemoryBound(to: fftwf_complex.self)
  }

  /// Computes the spectrum of the frame that is centered on sample `center`, real and imaginary parts in turn. Beyond
  /// its ends, the sound is silent.
  func analyze(_ sound: [Float], at center: Int, into spectrum: inout [Float]) {
    let start = center - Self.hop
    for index in 0..<Self.length {
      let place = start + index
      let sample = place >= 0 && place < sound.count ? sound[place] : 0
      unsafe time[index] = sample * Self.window[index]
    }
    unsafe fftwf_execute_dft_r2c(forward, time, Self.complex(bins))
    let scale = 1 / Float(Self.length)
    for index in 0..<2 * Self.binCount { unsafe spectrum[index] = bins[index] * scale }
  }

  /// Adds the sound of a frame that is centered on sample `center`, as far as it's within `sound`.
  func synthesize(_ spectrum: [Float], at center: Int, addingTo sound: inout [Float]) {
    for index in 0..<2 * Self.binCount { unsafe bins[index] = spectrum[index] }
    unsafe fftwf_execute_dft_c2r(inverse, Self.complex(bins), time)
    let start = center - Self.hop
    for index in max(0, -start)..<max(0, -start, min(Self.length, sound.count - start)) {
      unsafe sound[start + index] += time[index] * Self.window[index]
    }
  }
}
