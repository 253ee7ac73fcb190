import SoundFiles
import Terms
import Testing

@testable import AudioIO

struct StreamedHeaderTests {
  @Test(
    "the same sound becomes the same bytes, and its beginning is known before its end",
    arguments: [
      (AudioContainer.ogg, AudioCodec.vorbis), (.ogg, .opus), (.mp3, .mp3), (.flac, .flacS16),
    ])
  func repeated(container: AudioContainer, codec: AudioCodec) throws {
    let folder = try TemporaryFolder()
    let format = AudioFormat(container: container, codec: codec, sampleRate: 48_000, channels: 2)
    let samples = swell(frames: 96_000, channels: 2, sampleRate: 48_000)
    func start(_ name: String) throws -> [UInt8] {
      var bytes = try Array(contents(folder(name)).prefix(StreamedHeader.byteCount))
      StreamedHeader.complete(&bytes, frames: 96_000, sampleRate: 48_000)
      return bytes
    }
    var quantised: [Int16] = []
    var writer = try AudioWriter(creating: folder("a"), format: format, expectedFrames: 96_000)
    try writer.write(samples.span, quantised: &quantised)
    let early = try start("a")
    try writer.finish()
    #expect(try early.count == StreamedHeader.byteCount && early == start("a"))
    try encode(samples, to: folder("b"), format)
    #expect(try contents(folder("a")) == contents(folder("b")))
    #expect(try decode(folder("a")).count >= samples.count)
  }

  @Test("frames at twice the rate are rounded to samples of MP3")
  func rounding() throws {
    let folder = try TemporaryFolder()
    let format = AudioFormat(container: .mp3, codec: .mp3, sampleRate: 48_000, channels: 1)
    try encode(swell(frames: 48_000, channels: 1, sampleRate: 48_000), to: folder("a.mp3"), format)
    let start = try contents(folder("a.mp3")).prefix(StreamedHeader.byteCount)
    func completed(_ frames: Int64, _ sampleRate: Int) -> [UInt8] {
      var bytes = Array(start)
      StreamedHeader.complete(&bytes, frames: frames, sampleRate: sampleRate)
      return bytes
    }
    #expect(completed(95_999, 96_000) == completed(48_000, 48_000))
    #expect(completed(95_999, 96_000) != completed(47_999, 48_000))
  }
}
