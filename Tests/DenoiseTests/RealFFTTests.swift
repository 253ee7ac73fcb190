import Glibc
import Testing

@testable import Denoise

@Suite struct RealFFTTests {
  @Test("a transform equals the sum that defines it", arguments: [16, 30, 384])
  func definition(length: Int) {
    let samples = TestSignals.noise(length, level: 1)
    var fft = RealFFT(length: length)
    var spectrum: [Float] = []
    fft.forward({ for index in 0..<length { $0[index] = samples[index] } }) {
      for index in $0.indices { spectrum.append($0[index]) }
    }
    #expect(spectrum.count == length + 2)
    for bin in 0...(length / 2) {
      var real = 0.0, imaginary = 0.0
      for (index, sample) in samples.enumerated() {
        let phase = -2 * Double.pi * Double(bin * index % length) / Double(length)
        real += Double(sample) * cos(phase)
        imaginary += Double(sample) * sin(phase)
      }
      #expect(abs(real - Double(spectrum[2 * bin])) < 1e-4)
      #expect(abs(imaginary - Double(spectrum[2 * bin + 1])) < 1e-4)
    }
  }
}
