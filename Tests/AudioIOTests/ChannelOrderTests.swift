import Terms
import Testing

@testable import AudioIO

struct ChannelOrderTests {
  /// Letters of the channels in both orders: left, right, center, low frequencies, back and side left and right, back
  /// center.
  @Test(
    "Vorbis and Opus have the order of their specifications",
    arguments: [
      ("LRC", "LCR"), ("LRClr", "LCRlr"), ("LRCFlr", "LCRlrF"), ("LRCFbsS", "LCRsSbF"), ("LRCFlrsS", "LCRsSlrF"),
    ])
  func order(wave: String, codec: String) throws {
    for kind in [AudioCodec.vorbis, .opus] {
      let format = AudioFormat(container: .ogg, codec: kind, sampleRate: 48_000, channels: wave.utf8.count)
      var order = try #require(ChannelOrder(format))
      // Two frames.
      let samples = (wave + wave).utf8.map { Float($0) }
      var changed = samples
      var span = changed.mutableSpan
      order.toCodec(&span)
      #expect(changed == (codec + codec).utf8.map { Float($0) })
      span = changed.mutableSpan
      order.fromCodec(&span)
      #expect(changed == samples)
    }
  }

  @Test func mostSoundKeepsItsOrder() {
    for channels in [1, 2, 4, 9] {
      #expect(ChannelOrder(AudioFormat(container: .ogg, codec: .opus, sampleRate: 48_000, channels: channels)) == nil)
    }
    #expect(ChannelOrder(AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 48_000, channels: 6)) == nil)
  }
}
