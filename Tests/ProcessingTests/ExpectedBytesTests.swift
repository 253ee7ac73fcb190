import AudioIO
import Processing
import Terms
import Testing
import Workers

@Suite struct ExpectedBytesTests {
  @Test(
    "a FLAC file is expected with the depth that it gets",
    arguments: [
      (.pcmU8, 1), (.pcmS16, 2), (.pcmS24, 3), (.pcmS32, 3), (.pcmF32, 3), (.alac24, 3),
    ] as [(AudioCodec, Int64)])
  func depth(codec: AudioCodec, bytes: Int64) throws {
    let source = AudioFormat(container: .wav, codec: codec, sampleRate: 48_000, channels: 2)
    let target = try OutputFormat.flac.format(for: source)
    #expect(ExpectedBytes.sound(target, frames: 1000, from: .init(source, bytes: 9)) == 2000 * bytes)
  }
}
