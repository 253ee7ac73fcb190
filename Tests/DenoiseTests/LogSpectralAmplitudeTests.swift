import Glibc
import Testing

@testable import Denoise

/// Returns ∫ x…∞ e^−t / t dt, by its power series below 2 and its continued fraction (Lentz) above.
/// Source: Abramowitz & Stegun 5.1.11 and 5.1.22.
func exponentialIntegral(_ x: Double) -> Double {
  if x < 2 {
    var sum = -0.577_215_664_901_532_9 - log(x), term = 1.0
    for n in 1..<60 {
      term *= -x / Double(n)
      sum -= term / Double(n)
    }
    return sum
  }
  var b = x + 1, c = 1e300, d = 1 / b, result = d
  for n in 1..<300 {
    let a = -Double(n * n)
    b += 2
    d = 1 / (a * d + b)
    c = b + a / c
    result *= c * d
  }
  return result * exp(-x)
}

/// Returns the gain as in the paper, in double precision.
func referenceLogSpectralGain(prior: Double, posterior: Double) -> Double {
  let ratio = prior / (1 + prior)
  let v = max(ratio * posterior, 1e-10)
  return min(1, ratio * exp(0.5 * exponentialIntegral(v)))
}

@Suite struct LogSpectralAmplitudeTests {
  @Test func theReferenceKnowsTabulatedValues() {
    #expect(abs(exponentialIntegral(1) - 0.219_383_934_395_520_3) < 1e-14)
    #expect(abs(exponentialIntegral(0.01) - 4.037_929_576_538_114) < 1e-12)
    #expect(abs(exponentialIntegral(5) - 0.001_148_295_591_275_326) < 1e-15)
  }

  @Test func theFitStaysWithinItsBound() {
    var worst = 0.0
    var v = 1e-8
    while v < 1e6 {
      let exact = v < 500 ? v * exp(exponentialIntegral(v)) : v
      worst = max(worst, abs(Double(PlainLoops.scaledExponential(Float(v))) / exact - 1))
      v *= 1.003
    }
    #expect(worst < 8e-6)
    #expect(abs(PlainLoops.scaledExponential(0) / 0.561_459_5 - 1) < 1e-5)
  }

  @Test func theGainMatchesThePaperToATenThousandthOfADecibel() {
    for prior in stride(from: -25.0, through: 50, by: 2.5) {
      for posterior in stride(from: -60.0, through: 40, by: 2.5) {
        let xi = pow(10, prior / 10), gamma = pow(10, posterior / 10)
        let gain = Double(PlainLoops.amplitudeGain(prior: Float(xi), posterior: Float(gamma)))
        let exact = referenceLogSpectralGain(prior: xi, posterior: gamma)
        #expect(abs(20 * log10(gain / exact)) < 1e-4, "ξ \(prior) dB, γ \(posterior) dB")
        let cleaned = Double(PlainLoops.cleanedPower(prior: Float(xi), posterior: Float(gamma)))
        #expect(abs(cleaned / (exact * exact * gamma) - 1) < 2e-5)
      }
    }
  }

  @Test func aSilentBinHasAGainThatIsANumber() {
    #expect(PlainLoops.amplitudeGain(prior: 0.01, posterior: 0).isFinite)
    #expect(PlainLoops.cleanedPower(prior: 0.01, posterior: 0) == 0)
  }

  @Test func theSquareRootOfTheKernelsIsExactToSinglePrecision() {
    var x: Float = 1e-20
    while x < 1e20 {
      #expect(abs(Kernels.squareRoot(x) / x.squareRoot() - 1) < 1e-6)
      x *= 1.37
    }
    #expect(Kernels.squareRoot(0) == 0)
  }
}
