import CFFTW
import Terms

/// Whether FFTW's planner has the plan below.
private let hasWisdom = unsafe fftwf_import_wisdom_from_string(plan2304) == 1

/// The plan for 2,304 numbers, 48 ms at 48 kHz, that FFTW found by measuring all of them: 1.5 µs on a Zen 5, compared
/// with 3.4 for its estimate. `fftwf-wisdom -n -x cof2304 cob2304` prints it. Another version or build of FFTW ignores
/// it, and so does a processor without AVX; the estimate is used then.
private let plan2304 = """
  (fftw-3.3.10 fftwf_wisdom #x9e7d4dee #xdb14fed1 #x34bf76a4 #xeb6e8fdf
    (fftwf_codelet_t1fv_12_avx 0 #x1040 #x1040 #x0 #x09d2067e #xe82dea8f #x98ae3544 #x372f7834)
    (fftwf_codelet_n2bv_12_avx 0 #x1040 #x1040 #x0 #x20ae0d8b #xac9e1580 #xe98915b3 #x24d06221)
    (fftwf_codelet_t2fv_16_avx 0 #x1040 #x1040 #x0 #x2e820134 #xafe0b76f #x3320915e #xb23ad24e)
    (fftwf_codelet_t2bv_16_avx 0 #x1040 #x1040 #x0 #x9796e88c #x078e43ac #xaebf0b40 #x189f4739)
    (fftwf_codelet_n2fv_12_avx 0 #x1040 #x1040 #x0 #x15ab7c86 #x63cd8a88 #xb57786b1 #x6534bf42)
    (fftwf_dft_vrank_geq1_register 0 #x1040 #x1040 #x0 #xa413680c #x849276ee #x529854a6 #xacee5cce)
    (fftwf_codelet_t1bv_12_avx 0 #x1040 #x1040 #x0 #x2082fc47 #x629b6490 #x93635889 #x2c809cc3)
    (fftwf_dft_vrank_geq1_register 0 #x1040 #x1040 #x0 #xcb7a98a0 #xa375679f #x24c96664 #x4c806d77)
  )
  """

/// A complex transform of one length and direction, by FFTW in single precision: Σ x[n] exp(∓2πi kn/N), not scaled.
///
/// Plans are estimated, except for the one above, because measuring takes half a second. More importantly, plans are
/// the same in every process, so the same samples give the same bits in a job, its repetition, and a preview.
/// Processors with other vectors may give other bits: plans without vectors differ by −137 dB or less.
@safe struct ComplexTransform: ~Copyable {
  private let plan: fftwf_plan

  /// Makes the plan.
  /// - Parameters:
  ///   - length: of the sequences, N.
  ///   - isInverse: the direction.
  ///   - source: memory of the kind that will be transformed, aligned to 16 bytes; it isn't used.
  ///   - target: the same for the result, separate from `source`.
  @unsafe
  init(length: Int, isInverse: Bool, from source: Row, to target: Row) {
    let direction = isInverse ? FFTW_BACKWARD : FFTW_FORWARD
    var plan: fftwf_plan?
    FFTWPlanner.lock.withLock { _ in
      _ = hasWisdom
      unsafe plan = fftwf_plan_dft_1d(
        Int32(length), Self.complex(source), Self.complex(target), direction, FFTW_ESTIMATE)
    }
    guard let plan = unsafe plan else { fatalError("no plan for a transform of \(length)") }
    unsafe self.plan = plan
  }

  deinit { FFTWPlanner.lock.withLock { _ in unsafe fftwf_destroy_plan(plan) } }

  /// Transforms `2 * length` numbers, real and imaginary parts in turn. Both pointers are aligned to 16 bytes.
  @unsafe
  func run(from source: Row, to target: Row) {
    unsafe fftwf_execute_dft(plan, Self.complex(source), Self.complex(target))
  }

  private static func complex(_ row: Row) -> UnsafeMutablePointer<fftwf_complex> {
    unsafe UnsafeMutableRawPointer(row).assumingMemoryBound(to: fftwf_complex.self)
  }
}
