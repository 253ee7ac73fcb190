import Glibc
import Testing

@testable import Denoise

@Suite struct PairTransformTests {
  /// Loads two frames of noise.
  private func load(_ transform: PairTransform) -> (first: [Float], second: [Float]) {
    let frames = (1...2).map { TestSignals.noise(transform.length, level: 1, seed: UInt64($0)) }
    for index in 0..<transform.length {
      unsafe transform.input[2 * index] = frames[0][index]
      unsafe transform.input[2 * index + 1] = frames[1][index]
    }
    return (frames[0], frames[1])
  }

  @Test("a transform equals the sum that defines it", arguments: [16, 24, 40, 384])
  func definition(length: Int) {
    let transform = PairTransform(length: length), (first, second) = load(transform)
    transform.run()
    for bin in 0..<length {
      var real = 0.0, imaginary = 0.0
      for index in 0..<length {
        let phase = -2 * Double.pi * Double(bin * index % length) / Double(length)
        real += Double(first[index]) * cos(phase) - Double(second[index]) * sin(phase)
        imaginary += Double(first[index]) * sin(phase) + Double(second[index]) * cos(phase)
      }
      let found = unsafe (transform.output[2 * bin], transform.output[2 * bin + 1])
      #expect(abs(real - Double(found.0)) < 1e-4 && abs(imaginary - Double(found.1)) < 1e-4)
    }
  }

  @Test("the inverse of a transform is the frames times their length", arguments: [16, 120, 2048, 2304])
  func inverse(length: Int) {
    let transform = PairTransform(length: length), (first, second) = load(transform)
    transform.run()
    for index in 0..<(2 * length) { unsafe transform.input[index] = transform.output[index] }
    transform.invert()
    for index in 0..<length {
      let found = unsafe (transform.output[2 * index], transform.output[2 * index + 1])
      #expect(abs(found.0 / Float(length) - first[index]) < 1e-5)
      #expect(abs(found.1 / Float(length) - second[index]) < 1e-5)
    }
  }
}
