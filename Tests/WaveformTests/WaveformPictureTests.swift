import Testing

@testable import Waveform

struct WaveformPictureTests {
  private let clear = PictureColor.clear

  @Test func silenceIsALineOfOnePixelAtZero() throws {
    let source = try PictureSource(.repeating([0], frames: 40_000))
    for (height, ratio) in [(100, 1.0), (101, 1), (100, 2), (99, 3), (80, 1.5)] {
      let image = try Drawing(source, query(width: 200)) { ($0.height, $0.pixelRatio) = (height, ratio) }.image()
      #expect(image.width == Int(200 * ratio) && image.height == Int((Double(height) * ratio).rounded()))
      let rows = try #require(image.drawn(0, on: clear))
      #expect((0..<image.width).allSatisfy { image.drawn($0, on: clear) == rows })
      let middle = Double(rows.lowerBound + rows.upperBound + 1) / 2
      #expect(abs(middle - Double(image.height) / 2) <= 1 && abs(Double(rows.count) - ratio) <= 0.5)
      // Not two half-covered rows.
      #expect(image[9, rows.lowerBound].alpha > 120)
    }
  }

  @Test func fullScaleReachesBothEdges() throws {
    for samples in [[Int16.max, .min], [.max, 0, .min, 0]] {
      let source = try PictureSource(.repeating(samples, frames: 40_000))
      let image = try Drawing(source, query(width: 50)) { $0.height = 65 }.image()
      #expect((0..<50).allSatisfy { image.drawn($0, on: clear) == 0...64 })
      // The loudness has the full color, and the peaks half of it.
      #expect(image[25, 32] == PictureStyle.teal)
      if samples.count == 4 { #expect(image[25, 3] == PictureStyle.teal.opacity(PictureStyle.peakOpacity)) }
    }
  }

  @Test func theLoudnessIsDrawnToItsLevel() throws {
    let source = try PictureSource(.repeating([16_384, -16_384, 0, 0, 0, 0, 0, 0], frames: 80_000))
    let image = try Drawing(source, query(width: 50)) { $0.height = 201 }.image()
    // Peaks ±0.5, RMS ±0.25 of 100 pixels.
    #expect(image.drawn(20, on: clear) == 50...150)
    let full = (0..<201).filter { image[20, $0] == PictureStyle.teal }
    #expect(full.first == 76 && full.last == 124)
  }

  @Test func everyPeakIsDrawnInItsPlace() throws {
    var recording = Recording.repeating([0], frames: 100_000)
    let peaks = [0, 255, 256, 4321, 50_000, 77_777, 99_999]
    for frame in peaks { recording.samples[frame] = 30_000 }
    let source = try PictureSource(recording)
    for width in [40, 390, 391, 777, 1999] {
      let image = try Drawing(source, query(width: width)) { $0.height = 50 }.image()
      let loud = Set((0..<width).filter { image.drawn($0, on: clear)?.lowerBound ?? 99 < 14 })
      // A pixel of a slice computed from points is at least 256 frames wide.
      let reach = 1 + 256 * width / 100_000
      for frame in peaks {
        let column = frame * width / 100_000
        #expect(!loud.isDisjoint(with: column - reach...column + reach), "frame \(frame) of width \(width)")
      }
      #expect(
        loud.allSatisfy { column in peaks.contains { abs($0 * width / 100_000 - column) <= reach + 1 } },
        "width \(width)")
    }
  }

  @Test func picturesOfOneScaleJoinWithoutASeam() throws {
    let source = try PictureSource(.words())
    func image(_ start: Double, _ end: Double) throws -> PNGImage {
      try Drawing(source, WaveformQuery(start: start, end: end, resolution: .scale(256))).image()
    }
    let (left, right, whole) = (try image(0, 2.048), try image(2.048, 4.096), try image(0, 4.096))
    #expect(left.width == 64 && right.width == 64 && whole.width == 128)
    for x in 0..<128 {
      #expect((0..<200).allSatisfy { whole[x, $0] == (x < 64 ? left[x, $0] : right[x - 64, $0]) }, "column \(x)")
    }
  }

  @Test func aScaleIsFramesPerPixelAndStartsAtAWholePixel() throws {
    let source = try PictureSource(.words())
    for (scale, width, start) in [(256, 95, 15_872), (100, 241, 15_900), (1000, 25, 15_000), (1, 24_000, 15_999)] {
      let query = WaveformQuery(start: 15_999.0 / 8000, end: 39_999.0 / 8000, resolution: .scale(scale))
      guard scale > 1 else {
        #expect(throws: WaveformError.pictureTooWide(parameter: "scale", pixels: 24_000, limit: 20_000)) {
          try Drawing(source, query)
        }
        continue
      }
      let picture = try Drawing(source, query).picture
      #expect(picture.width == width && picture.startFrame == start, "\(scale)")
    }
  }

  @Test func samplesAreALineWithDotsIfThereIsRoom() throws {
    let source = try PictureSource(.repeating([20_000, -20_000], frames: 1000))
    let close = try Drawing(source, query(0, 20.0 / 8000, width: 200)) { $0.height = 100 }.image()
    // Each sample is in the middle of its share of 10 pixels: a dot of 5 pixels, and a line to the next.
    for index in 0..<20 {
      let (x, y) = (10 * index + 5, index % 2 == 0 ? 20 : 80)
      #expect(close[x, y] == PictureStyle.teal && close[x - 2, y] == PictureStyle.teal)
      #expect(close[x, y - 4].alpha == 0 || close[x, y + 4].alpha == 0)
    }
    #expect(close[10, 50].alpha > 200)
    // No dots if there isn't enough room.
    let wide = try Drawing(source, query(0, 100.0 / 8000, width: 200)) { $0.height = 100 }
    #expect(wide.picture.recording.isLine)
    let image = try wide.image()
    #expect((0..<200).allSatisfy { image[$0, 16].alpha == 0 && image[$0, 84].alpha == 0 })
    // More than two frames per pixel: an outline in the full color.
    let outline = try Drawing(source, query(0, 500.0 / 8000, width: 200))
    #expect(!outline.picture.recording.isLine)
    #expect(try outline.image()[100, 100] == PictureStyle.teal)
  }

  @Test func aSteepSignalIsDrawnWithoutGapsAtEveryZoom() throws {
    let source = try PictureSource(.words(channels: 1))
    for scale in [1, 2, 3, 4, 7, 16, 60, 255, 256, 300] {
      let query = WaveformQuery(start: 0.5, end: 0.5 + Double(80 * scale) / 8000, resolution: .scale(scale))
      let image = try Drawing(source, query) { $0.background = .rgb(0xffffff) }.image()
      var last: ClosedRange<Int>?
      for x in 0..<80 {
        // The zero line in a picture of samples is gray.
        let rows = (0..<200).filter { Int(image[x, $0].blue) - Int(image[x, $0].red) > 20 }
        let drawn = try #require(rows.first.flatMap { first in rows.last.map { first...$0 } }, "\(scale), column \(x)")
        if let last { #expect(drawn.upperBound >= last.lowerBound - 1 && drawn.lowerBound <= last.upperBound + 1) }
        last = drawn
      }
    }
  }

  @Test(arguments: [(1, 100), (3, 100), (700, 20_000), (30_000, 1), (48_000, 1000)])
  func everyLengthFillsTheWidth(frames: Int, width: Int) throws {
    let source = try PictureSource(.repeating([9000, -9000, 4000], frames: frames))
    let image = try Drawing(source, query(width: width)) { $0.height = 40 }.image()
    #expect(image.width == width)
    if frames > 3 { #expect((0..<width).allSatisfy { image.drawn($0, on: clear) != nil }) }
    #expect((0..<width).contains { image.drawn($0, on: clear) != nil })
  }

  @Test func barsAreSymmetricAndSeparate() throws {
    let source = try PictureSource(.words(channels: 1))
    let image = try Drawing(source, query(width: 99)) { ($0.look, $0.height) = (.bars, 81) }.image()
    var heights: Set<Int> = []
    for x in 0..<99 {
      let rows = image.drawn(x, on: clear)
      guard x % 4 != 3 else {
        #expect(rows == nil, "a gap at \(x)")
        continue
      }
      let drawn = try #require(rows)
      #expect(drawn.lowerBound == 80 - drawn.upperBound)
      heights.insert(drawn.count)
    }
    #expect(heights.count > 8)
  }

  @Test func aDayInOnePixelIsStillAPicture() throws {
    let frames: Int64 = 30 * 3600 * 768_000
    let extent = WaveformExtent(
      sampleRate: 768_000, channels: 2, availableFrames: frames, totalFrames: frames, isComplete: true)
    for width in [1, 7, 1000] {
      let picture = try WaveformPicture(query(width: width), style: PictureStyle(), of: extent, overlay: extent)
      #expect(picture.window.scale <= WaveformWindow.scaleLimit && picture.window.pixelCount < 10_000)
      #expect(picture.window.frameRange.upperBound == frames)
    }
  }
}
