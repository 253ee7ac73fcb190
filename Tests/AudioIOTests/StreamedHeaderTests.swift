import SoundFiles
import Testing

@testable import AudioIO

struct StreamedHeaderTests {
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
