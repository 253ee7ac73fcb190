import Randomness
import Testing

@testable import Waveform

struct WaveformWindowTests {
  private func complete(_ frames: Int64, rate: Int = 8000, channels: Int = 2) -> WaveformExtent {
    WaveformExtent(
      sampleRate: rate, channels: channels, availableFrames: frames, totalFrames: frames, isComplete: true)
  }

  @Test(
    "a bad query is refused with its facts",
    arguments: [
      (WaveformQuery(start: -0.1), .timeOutOfRange(parameter: "start", seconds: -0.1)),
      (WaveformQuery(start: .infinity), .timeOutOfRange(parameter: "start", seconds: .infinity)),
      (WaveformQuery(end: -1), .timeOutOfRange(parameter: "end", seconds: -1)),
      (WaveformQuery(end: .infinity), .timeOutOfRange(parameter: "end", seconds: .infinity)),
      (WaveformQuery(start: 2, end: 1), .windowReversed(start: 2, end: 1)),
      (WaveformQuery(start: 2, end: 2), .windowReversed(start: 2, end: 2)),
      (WaveformQuery(end: 0), .windowReversed(start: 0, end: 0)),
      (WaveformQuery(resolution: .scale(0)), .scaleOutOfRange(scale: 0, limit: 1 << 24)),
      (WaveformQuery(resolution: .scale(1 << 24 + 1)), .scaleOutOfRange(scale: 1 << 24 + 1, limit: 1 << 24)),
      (WaveformQuery(resolution: .width(0)), .widthOutOfRange(width: 0, limit: 20_000)),
      (WaveformQuery(resolution: .width(20_001)), .widthOutOfRange(width: 20_001, limit: 20_000)),
      (WaveformQuery(resolution: .scale(1)), .tooManyPixels(count: 80_000, limit: 20_000)),
      (WaveformQuery(channels: .channel(2)), .channelOutOfRange(channel: 2, channels: 2)),
      (WaveformQuery(channels: .channel(-1)), .channelOutOfRange(channel: -1, channels: 2)),
      (WaveformQuery(measures: []), .noMeasures),
    ] as [(WaveformQuery, WaveformError)])
  func badQuery(query: WaveformQuery, error: WaveformError) {
    #expect(throws: error) { try WaveformWindow(query, of: complete(80_000)) }
  }

  @Test func aNonNumberIsRefused() {
    #expect(throws: WaveformError.self) { try WaveformWindow(WaveformQuery(start: .nan), of: complete(1)) }
    #expect(throws: WaveformError.self) { try WaveformWindow(WaveformQuery(end: .nan), of: complete(1)) }
  }

  @Test func anAnswerThatWouldExhaustMemoryIsRefused() {
    let extent = complete(1 << 40, rate: 768_000, channels: 32)
    let query = WaveformQuery(resolution: .scale(256), channels: .split)
    #expect(throws: WaveformError.tooManyPixels(count: 1 << 32, limit: 1 << 20)) {
      try WaveformWindow(query, of: extent)
    }
  }

  @Test(arguments: [10.0, 10.5, 1e9, 1e300])
  func aSliceStartingPastTheEndIsEmpty(start: Double) throws {
    for resolution in [WaveformResolution.scale(100), .scale(300), .width(20), .width(1)] {
      let window = try WaveformWindow(WaveformQuery(start: start, resolution: resolution), of: complete(80_000))
      #expect(window.pixelCount == 0 && !window.needsSamples && window.frameRange.isEmpty)
      #expect(WaveformSlice(window, samples: [Int16]().span).data.isEmpty)
    }
  }

  @Test func anEndBeyondTheEndIsClamped() throws {
    for resolution in [WaveformResolution.scale(100), .scale(300), .width(20)] {
      let open = try WaveformWindow(WaveformQuery(start: 3, resolution: resolution), of: complete(80_001))
      for end in [80_001.0 / 8000, 11, 1e300] {
        let window = try WaveformWindow(
          WaveformQuery(start: 3, end: end, resolution: resolution), of: complete(80_001))
        #expect(window.firstPixel == open.firstPixel && window.pixelCount == open.pixelCount)
      }
    }
  }

  @Test func aWindowIsAtLeastOneFrame() throws {
    let query = WaveformQuery(start: 1, end: 1.000_001, resolution: .scale(1))
    let window = try WaveformWindow(query, of: complete(80_000))
    #expect(window.frameRange == 8000..<8001)
  }

  @Test func widthIsTheSmallestScaleThatFits() throws {
    var generator = SeededGenerator(state: TestSeed.of(9))
    for _ in 0..<200 {
      let frames = Int.random(in: 1...20_000, using: &generator)
      let recording = Recording(sampleRate: 1000, channels: 1, samples: [Int16](repeating: 0, count: frames))
      let start = Int.random(in: 0..<frames, using: &generator)
      let end = Int.random(in: start + 1...frames, using: &generator)
      let width = Int.random(in: 1...(Bool.random(using: &generator) ? 4 : 300), using: &generator)
      let query = WaveformQuery(start: Double(start) / 1000, end: Double(end) / 1000, resolution: .width(width))
      let window = try WaveformWindow(query, of: recording.extent)
      let least = (1...1 << 20).first { referencePixels(query, scale: $0, of: recording).count <= width }
      #expect(window.scale == least, "\(start)..<\(end) of \(frames), width \(width)")
      #expect(window.pixelCount <= width)
    }
  }

  @Test func widthIsFoundQuicklyHoweverLateTheWindow() throws {
    // The worst case for the search: a short window, far from the start, one pixel wide.
    let extent = complete(1 << 48, rate: 1)
    for (start, frames) in [(1 << 47, 1000), (6_469_693_230 * 30_030 - 1, 3), (1 << 47 - 1, 2)] {
      let query = WaveformQuery(start: Double(start), end: Double(start + frames), resolution: .width(1))
      let window = try WaveformWindow(query, of: extent)
      #expect(window.pixelCount == 1)
      #expect(window.frameRange.contains(Int64(start)) && window.frameRange.contains(Int64(start + frames - 1)))
    }
  }

  @Test func whileGrowingOnlyTheFramesReadAreAvailable() throws {
    var extent = WaveformExtent(
      sampleRate: 8000, channels: 2, availableFrames: 25_600, totalFrames: nil, estimatedFrames: 80_000,
      isComplete: false)
    let wide = try WaveformWindow(WaveformQuery(resolution: .width(100)), of: extent)
    // 313 points in 100 pixels: based on the estimate, not on the frames available.
    #expect(wide.scale == 802 && wide.pixelCount == 25_600 / 802)
    let fine = try WaveformWindow(WaveformQuery(end: 1, resolution: .scale(10)), of: extent)
    #expect(fine.pixelCount == 0 && !fine.needsSamples)
    // The end counts only when it has been reached.
    (extent.totalFrames, extent.availableFrames) = (25_700, 25_600)
    #expect(try WaveformWindow(WaveformQuery(resolution: .scale(1024)), of: extent).pixelCount == 25)
    (extent.availableFrames, extent.isComplete) = (25_700, true)
    #expect(try WaveformWindow(WaveformQuery(resolution: .scale(1024)), of: extent).pixelCount == 26)
  }
}
