import AudioIO
import Denoise
import SoundFiles
import Terms
import Testing
import Workers

@testable import Processing

struct ExpectedLengthTests {
  @Test("progress isn't whole before the end, and the estimate isn't less than what was read")
  func progress() throws {
    let folder = try TemporaryFolder()
    let path = try folder.file("a.wav", wave([Int16](repeating: 1, count: 1000)))
    let known = ExpectedLength(try AudioReader(path: path), path: path)
    #expect(known.fraction(read: 500) == 0.5 && known.fraction(read: 1000) == 0.999)
    #expect(known.progress(read: 10, ready: 5).totalFrames == 1000)
    let vorbis = AudioFormat(container: .ogg, codec: .vorbis, sampleRate: 8000, channels: 1)
    try encode(swell(frames: 5000, channels: 1, sampleRate: 8000), to: folder("b.ogg"), vorbis)
    let estimated = ExpectedLength(try AudioReader(path: folder("b.ogg")), path: folder("b.ogg"))
    #expect(estimated.progress(read: 100_000, ready: 5).estimatedFrames == 100_000)
  }

  @Test("a part of a file is expected to take its share of the bytes, rounded up")
  func share() {
    let flac = AudioFormat(container: .flac, codec: .flacS16, sampleRate: 48_000, channels: 2)
    #expect(ExpectedBytes.sound(flac, frames: 9, from: .init(flac, bytes: 1001, share: 0.5)) == 501)
    let wave = AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 48_000, channels: 2)
    #expect(ExpectedBytes.sound(wave, frames: 9, from: .init(flac, bytes: 1001, share: 0.5)) == 36)
  }

  @Test("three strengths stand for reductions, and noise that was found is followed if it certainly changes")
  func defaults() {
    #expect(Strength.allCases.map { $0.reductionDB(.mmseLSA) } == [12, 18, 25])
    #expect(DenoiseParameters.adaptation(asked: nil, noise: nil) == .ifCertain)
    #expect(DenoiseParameters.adaptation(asked: nil, noise: .quantile(0.2)) == nil)
    #expect(DenoiseParameters.adaptation(asked: true, noise: .quantile(0.2)) == .always)
    #expect(DenoiseParameters.adaptation(asked: false, noise: nil) == nil)
  }
}
