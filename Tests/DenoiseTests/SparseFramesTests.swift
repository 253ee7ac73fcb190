import CPeaks
import Randomness
import Testing

@testable import Denoise

@Suite struct SparseFramesTests {
  /// Mixed frames and their mean squares.
  private struct Frames: Equatable {
    var mixes: [[Float]] = []
    var meanSquares: [Double] = []
  }

  /// All mixed frames of a recording, by the plain formulas.
  private func plain(_ samples: [Int16], sampleRate: Int, channels: Int) -> Frames {
    let cutter = SparseFrames(sampleRate: sampleRate, channels: channels)
    let group = max(1, sampleRate / 11_025) * channels
    let length = cutter.length * group
    var frames = Frames()
    for start in stride(from: 0, through: samples.count - length, by: cutter.framesPerHop * channels) {
      var lanes = [Float](repeating: 0, count: 16)
      let whole = length / 16 * 16
      for index in 0..<whole { lanes[index % 16] += Float(samples[start + index]) * Float(samples[start + index]) }
      var sum = lanes.reduce(0.0) { $0 + Double($1) }
      for index in whole..<length { sum += Double(samples[start + index]) * Double(samples[start + index]) }
      frames.meanSquares.append(sum / Double(length))
      frames.mixes.append(
        (0..<cutter.length).map { place in
          (0..<group).reduce(0 as Float) { sum, offset in
            sum + Float(offset % channels % 2 == 0 ? 5 : 3) * Float(samples[start + place * group + offset])
          }
        })
    }
    return frames
  }

  @Test(
    "frames match the plain formulas on every instruction set",
    arguments: [
      (44_100, 2), (48_000, 2), (44_100, 1), (11_025, 2), (8000, 1), (22_050, 2), (96_000, 2), (48_000, 6), (16_000, 3),
    ])
  func frames(sampleRate: Int, channels: Int) throws {
    var generator = TestRandom(for: sampleRate * 10 + channels)
    let samples = (0..<sampleRate / 4 * channels).map { _ in
      Int16.random(in: .min ... .max, using: &generator) >> Int16.random(in: 0...8, using: &generator)
    }
    let expected = plain(samples, sampleRate: sampleRate, channels: channels)
    #expect(expected.mixes.count >= 8)
    var index: Int32 = 0
    while let loops = unsafe peak_loops_of_set(index) {
      for pieces in [[1 << 20], [1, 319, 320, 321, 480, 7, 10_000]] {
        var cutter = unsafe SparseFrames(sampleRate: sampleRate, channels: channels, loops: loops)
        var (frames, start, turn) = (Frames(), 0, 0)
        while start < samples.count {
          let end = min(samples.count, start + pieces[turn % pieces.count] * channels)
          var position = 0
          while cutter.fill(from: samples.span.extracting(start..<end), &position) {
            frames.mixes.append(cutter.mix)
            frames.meanSquares.append(cutter.meanSquare)
          }
          (start, turn) = (end, turn + 1)
        }
        #expect(frames == expected)
      }
      index += 1
    }
  }
}
