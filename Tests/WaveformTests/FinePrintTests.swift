import Testing

@testable import Waveform

/// The sentences of the API's fine print on waveforms that no other test covers.
struct FinePrintTests {
  private func extent(_ frames: Int64, rate: Int = 8000, channels: Int = 1) -> WaveformExtent {
    WaveformExtent(
      sampleRate: rate, channels: channels, availableFrames: frames, totalFrames: frames, isComplete: true)
  }

  private func frames(_ start: Double, _ end: Double, rate: Int) throws -> Range<Int64> {
    try WaveformWindow(
      WaveformQuery(start: start, end: end, resolution: .scale(1)), of: extent(1 << 20, rate: rate)
    ).frameRange
  }

  @Test func secondsBecomeTheNearestFrame() throws {
    #expect(try frames(0.49, 2.51, rate: 1) == 0..<3)
    // Halfway cases round up.
    #expect(try frames(0.5, 2.5, rate: 1) == 1..<3)
    #expect(try frames(1.5, 3.5, rate: 1) == 2..<4)
    #expect(try frames(0.0624, 0.0626, rate: 8000) == 499..<501)
    // Decimal numbers that can't be represented exactly, for every frame of a second.
    for frame in Int64(0)..<44_100 {
      let start = Double(frame) / 44_100
      #expect(try frames(start, start + 1 / 44_100.0, rate: 44_100) == frame..<frame + 1)
    }
  }

  @Test func anEndIsAtLeastOneFrameAfterTheStart() throws {
    #expect(try frames(2, 2.001, rate: 1) == 2..<3)
    #expect(try frames(2.4, 2.6, rate: 1) == 2..<3)
    #expect(try frames(2.6, 2.7, rate: 1) == 3..<4)
  }

  @Test func eightBitPeaksAreTruncatedAndMeasuresRounded() throws {
    let cases: [(Int16, peak: Int16, measure: UInt16)] = [
      (0, 0, 0), (127, 0, 0), (128, 0, 1), (255, 0, 1), (256, 1, 1), (383, 1, 1), (384, 1, 2), (-1, 0, 0), (-128, 0, 1),
      (-255, 0, 1), (-256, -1, 1), (-384, -1, 2), (32_639, 127, 127), (32_640, 127, 127), (.max, 127, 127),
      (.min, -128, 127),
    ]
    for scale in [1, 256] {
      for (value, peak, measure) in cases {
        let recording = Recording(sampleRate: 8000, channels: 1, samples: [Int16](repeating: value, count: 512))
        try recording.withPyramid { pyramid in
          let query = WaveformQuery(
            resolution: .scale(scale), measures: [.peak, .rms, .average], bits: .eight)
          let slice = try recording.slice(query, of: pyramid)
          #expect(slice.data.allSatisfy { $0 == peak }, "\(value)")
          #expect(slice.rms.allSatisfy { $0 == measure } && slice.average.allSatisfy { $0 == measure }, "\(value)")
        }
      }
    }
  }

  @Test func measuresOfTheMixAreThoseOfTheTruncatedMix() throws {
    // 1 and 0 mix to 0, −1 and −2 to −1; averaging the channels' own measures would give other values.
    let samples = (0..<512).flatMap { (frame: Int) -> [Int16] in frame < 256 ? [1, 0] : [-1, -2] }
    let recording = Recording(sampleRate: 8000, channels: 2, samples: samples)
    try recording.withPyramid { pyramid in
      for scale in [128, 256] {
        let query = WaveformQuery(resolution: .scale(scale), measures: [.peak, .rms, .average])
        let slice = try recording.slice(query, of: pyramid)
        let half = 256 / scale
        #expect(slice.rms == [UInt16](repeating: 0, count: half) + [UInt16](repeating: 1, count: half))
        #expect(slice.average == slice.rms)
        #expect(slice.data.prefix(2) == [0, 0] && slice.data.suffix(2) == [-1, -1])
      }
    }
  }

  @Test func theLastPixelHoldsTheLastPartialPoint() throws {
    // 3 points of 256, the last of which has one frame, the loudest.
    var samples = [Int16](repeating: 5, count: 513)
    samples[512] = 1000
    let recording = Recording(sampleRate: 8000, channels: 1, samples: samples)
    try recording.withPyramid { pyramid in
      for (scale, length) in [(256, 3), (300, 3), (512, 2), (768, 1), (1 << 24, 1)] {
        let query = WaveformQuery(resolution: .scale(scale), measures: [.peak, .average])
        let slice = try recording.slice(query, of: pyramid)
        // P points result in ⌈P · 256 / scale⌉ pixels.
        #expect(slice.length == length && slice.data.last == 1000)
        // A partial point is weighted by its number of frames.
        if scale >= 768 { #expect(slice.average == [7]) }
      }
    }
  }

  @Test func theDefaultWidthIsTwoThousand() throws {
    let window = try WaveformWindow(WaveformQuery(), of: extent(80_000_000))
    #expect(window.query.resolution == .width(2000) && window.query.bits == .sixteen && window.query.measures == .peak)
    #expect(window.pixelCount <= 2000 && window.scale == 40_000)
    let finer = try WaveformWindow(WaveformQuery(resolution: .scale(window.scale - 1)), of: extent(80_000_000))
    #expect(finer.pixelCount > 2000)
  }

  @Test(arguments: [1, 100, 255])
  func belowScale256TheLimitIsTwentyThousandPixels(scale: Int) throws {
    let most = Int64(20_000 * scale)
    let query = WaveformQuery(resolution: .scale(scale))
    #expect(try WaveformWindow(query, of: extent(most)).pixelCount == 20_000)
    #expect(throws: WaveformError.tooManyPixels(count: 20_001, limit: 20_000)) {
      try WaveformWindow(query, of: extent(most + 1))
    }
    #expect(try WaveformWindow(WaveformQuery(resolution: .scale(256)), of: extent(most * 257)).pixelCount > 20_000)
  }

  @Test func theLimitInJSONIsAMillionNumbers() throws {
    let query = WaveformQuery(resolution: .scale(256), channels: .split, measures: [.peak, .rms, .average])
    // Four numbers for each of two channels.
    try WaveformWindow(query, of: extent(125_000 * 256, channels: 2)).check(.json)
    #expect(throws: WaveformError.tooManyNumbers(count: 1_000_008, limit: 1_000_000, parameter: "scale")) {
      try WaveformWindow(query, of: extent(125_001 * 256, channels: 2)).check(.json)
    }
    // Two numbers per pixel.
    for form in [WaveformForm.json, .strictJSON, .peaksJSON] {
      try WaveformWindow(WaveformQuery(resolution: .scale(256)), of: extent(500_000 * 256)).check(form)
      let more = try WaveformWindow(WaveformQuery(resolution: .scale(256)), of: extent(500_001 * 256))
      #expect(throws: WaveformError.tooManyNumbers(count: 1_000_002, limit: 1_000_000, parameter: "scale")) {
        try more.check(form)
      }
      try more.check(.dat(version: 1))
    }
    let wide = WaveformQuery(resolution: .width(20_000), channels: .split)
    #expect(throws: WaveformError.tooManyNumbers(count: 1_280_000, limit: 1_000_000, parameter: "width")) {
      try WaveformWindow(wide, of: extent(20_000 * 256, channels: 32)).check(.json)
    }
  }
}
