import Randomness
import Testing

@testable import Sounds

/// Noise removal without any option, at a hundred random lengths, rates and numbers of channels. The quietest part,
/// from which the noise is learned, is the end.
@Suite struct PlainDenoiseTests {
  private struct Clip {
    let rate, channels, frames: Int
    let bytes: [UInt8]
  }

  private static let clips: [Clip] = {
    var random = TestRandom(for: 4301)
    // Noise whose level changes, and steady noise.
    var (loud, quiet) = ([UInt8](), [UInt8]())
    var level = 1
    for index in 0..<330_000 {
      if index % 1500 == 0 { level = .random(in: 300...20_000, using: &random) }
      loud += littleEndian(UInt16(bitPattern: Int16.random(in: -Int16(level)...Int16(level), using: &random)))
      quiet += littleEndian(UInt16(bitPattern: Int16.random(in: -100...100, using: &random)))
    }
    return (0..<100).map { number in
      let rate = [8000, 11_025, 16_000, 22_050, 44_100, 48_000].randomElement(using: &random) ?? 8000
      let channels = Int.random(in: 1...3, using: &random)
      // Half of them last hundredths of a second, as people cut them.
      let hundredths = Int.random(in: 30...300, using: &random) * rate / 100
      let frames = number % 2 == 0 ? hundredths : hundredths + Int.random(in: 0..<rate / 100, using: &random)
      let split = Int.random(in: frames / 4...frames * 3 / 4, using: &random)
      var file = WAVFile()
      (file.rate, file.channels) = (rate, channels)
      let (loudBytes, quietBytes) = (2 * channels * split, 2 * channels * (frames - split))
      file.data = Array(loud[..<loudBytes]) + Array(quiet[..<quietBytes])
      return Clip(rate: rate, channels: channels, frames: frames, bytes: file.bytes)
    }
  }()

  @Test("the plain command cleans each")
  func command() throws {
    let folder = try TemporaryFolder()
    for clip in Self.clips {
      try write(clip.bytes, to: folder.file("in.wav"))
      let finished = try Command.stillwave("denoise", folder.file("in.wav"), "-o", folder.file("out.wav"))
      #expect(finished.status == 0, "\(clip.frames) frames, \(clip.rate) Hz: \(finished.errors)")
    }
  }
}
