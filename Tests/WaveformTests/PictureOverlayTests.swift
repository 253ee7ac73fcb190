import Terms
import Testing

@testable import Waveform

struct PictureOverlayTests {
  private let clear = PictureColor.clear

  @Test func anOverlayIsAlignedByTimeAtAnyRateAndLength() throws {
    let main = try PictureSource(.repeating([0], frames: 48_000))
    var other = Recording.repeating([0], frames: 3 * 44_100, sampleRate: 44_100)
    for frame in 2 * 44_100..<2 * 44_100 + 4410 { other.samples[frame] = frame % 2 == 0 ? 20_000 : -20_000 }
    let overlay = try PictureSource(other)
    for (start, end, range) in [(0.0, 6.0, 200..<210), (1.0, 4.0, 200..<220), (1.9, 2.2, 200..<400)] {
      let image = try Drawing(main, query(start, end, width: 600), over: overlay) { $0.overlayColor = .rgb(0xff0000) }
        .image()
      let loud = (0..<600).filter { image.drawn($0, on: clear)?.lowerBound ?? 99 < 50 }
      #expect(abs((loud.first ?? 0) - range.lowerBound) <= 1 && abs((loud.last ?? 0) - range.upperBound + 1) <= 1)
      #expect(image[range.lowerBound + 4, 60] == .rgb(0xff0000))
      // Where the overlay has ended, only the recording is left, in its own color.
      if end == 6 { #expect(image[250, 99].red > image[400, 99].red && image[400, 99].alpha > 0) }
    }
  }

  @Test func anOverlayWithADifferentChannelCountIsMixedIntoEveryLane() throws {
    var split = query(width: 60)
    split.channels = .split
    let main = try PictureSource(.words(channels: 2))
    let mono = try PictureSource(.repeating([30_000, -30_000], frames: 48_000))
    let image = try Drawing(main, split, over: mono) { ($0.height, $0.overlayColor) = (204, .rgb(0x0000ff)) }.image()
    for top in [0, 104] { #expect(image[30, top + 50] == .rgb(0x0000ff) && image[30, top + 12] == .rgb(0x0000ff)) }
    var second = query(width: 60)
    second.channels = .channel(1)
    for (other, channels) in [(try PictureSource(.words(channels: 2)), .channel(1)), (mono, ChannelSelection.mix)] {
      #expect(try Drawing(main, second, over: other).picture.overlayWindow?.query.channels == channels)
    }
  }

  @Test func aGrowingOverlayIsDrawnAsFarAsItHasBeenRead() throws {
    let main = try PictureSource(.repeating([0], frames: 48_000))
    let loud = Recording.repeating([30_000, -30_000], frames: 48_000)
    for (available, columns) in [(0, 0), (25_600, 160), (48_000, 300)] as [(Int64, Int)] {
      let overlay = try PictureSource(loud, available: available)
      let image = try Drawing(main, query(width: 300), over: overlay).image()
      let drawn = (0..<300).filter { image.drawn($0, on: clear)?.lowerBound ?? 99 < 50 }
      // The last, partial point isn't available before the end.
      #expect(abs(drawn.count - columns) <= 2 && drawn.first ?? 0 == 0)
    }
  }
}
