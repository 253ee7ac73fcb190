import Testing

@testable import Waveform

struct WaveformPictureTests {
  private let clear = PictureColor(red: 0, green: 0, blue: 0, alpha: 0)

  private func query(_ start: Double? = nil, _ end: Double? = nil, width: Int) -> WaveformQuery {
    WaveformQuery(start: start, end: end, resolution: .width(width))
  }

  // MARK: What is drawn

  @Test func silenceIsALineOfOnePixelAtZero() throws {
    let source = try PictureSource(.repeating([0], frames: 40_000))
    for (height, ratio) in [(100, 1.0), (101, 1), (100, 2), (99, 3), (80, 1.5)] {
      let image = try Drawing(source, query(width: 200)) { ($0.height, $0.pixelRatio) = (height, ratio) }.image()
      #expect(image.width == Int(200 * ratio) && image.height == Int((Double(height) * ratio).rounded()))
      let rows = try #require(image.drawn(0, on: clear))
      #expect((0..<image.width).allSatisfy { image.drawn($0, on: clear) == rows })
      let middle = Double(rows.lowerBound + rows.upperBound + 1) / 2
      #expect(abs(middle - Double(image.height) / 2) <= 1 && abs(Double(rows.count) - ratio) <= 0.5)
      // Not two half ones.
      #expect(image[9, rows.lowerBound].alpha > 120)
    }
  }

  @Test func fullScaleReachesBothEdges() throws {
    for samples in [[Int16.max, .min], [.max, 0, .min, 0]] {
      let source = try PictureSource(.repeating(samples, frames: 40_000))
      let image = try Drawing(source, query(width: 50)) { $0.height = 65 }.image()
      #expect((0..<50).allSatisfy { image.drawn($0, on: clear) == 0...64 })
      // The loudness is drawn in the full colour, the peaks in half of it.
      #expect(image[25, 32] == PictureStyle.teal)
      if samples.count == 4 { #expect(image[25, 3] == PictureStyle.teal.opacity(PictureStyle.peakOpacity)) }
    }
  }

  @Test func theLoudnessReachesAsFarAsItIs() throws {
    let source = try PictureSource(.repeating([16_384, -16_384, 0, 0, 0, 0, 0, 0], frames: 80_000))
    let image = try Drawing(source, query(width: 50)) { $0.height = 201 }.image()
    // Peaks ±0.5, RMS ±0.25 of 100 pixels.
    #expect(image.drawn(20, on: clear) == 50...150)
    let full = (0..<201).filter { image[20, $0] == PictureStyle.teal }
    #expect(full.first == 76 && full.last == 124)
  }

  @Test func noPeakIsLostAndNoneIsElsewhere() throws {
    var recording = Recording.repeating([0], frames: 100_000)
    let peaks = [0, 255, 256, 4321, 50_000, 77_777, 99_999]
    for frame in peaks { recording.samples[frame] = 30_000 }
    let source = try PictureSource(recording)
    for width in [40, 390, 391, 777, 1999] {
      let image = try Drawing(source, query(width: width)) { $0.height = 50 }.image()
      let loud = Set((0..<width).filter { image.drawn($0, on: clear)?.lowerBound ?? 99 < 14 })
      // A pixel of the slice is 256 frames wide at the least where it is drawn from points.
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

  @Test func samplesAreALineWithDotsWhereThereIsRoom() throws {
    let source = try PictureSource(.repeating([20_000, -20_000], frames: 1000))
    let close = try Drawing(source, query(0, 20.0 / 8000, width: 200)) { $0.height = 100 }.image()
    // Each sample in the middle of its tenth of a share: a dot of 5 pixels, and a line to the next.
    for index in 0..<20 {
      let (x, y) = (10 * index + 5, index % 2 == 0 ? 20 : 80)
      #expect(close[x, y] == PictureStyle.teal && close[x - 2, y] == PictureStyle.teal)
      #expect(close[x, y - 4].alpha == 0 || close[x, y + 4].alpha == 0)
    }
    #expect(close[10, 50].alpha > 200)
    // Without room: no dots.
    let wide = try Drawing(source, query(0, 100.0 / 8000, width: 200)) { $0.height = 100 }
    #expect(wide.picture.recording.isLine)
    let image = try wide.image()
    #expect((0..<200).allSatisfy { image[$0, 16].alpha == 0 && image[$0, 84].alpha == 0 })
    // More frames than two a pixel: an outline, in the full colour.
    let outline = try Drawing(source, query(0, 500.0 / 8000, width: 200))
    #expect(!outline.picture.recording.isLine)
    #expect(try outline.image()[100, 100] == PictureStyle.teal)
  }

  @Test func aSteepSignalIsDrawnWithoutHolesAtEveryZoom() throws {
    let source = try PictureSource(.words(channels: 1))
    for scale in [1, 2, 3, 4, 7, 16, 60, 255, 256, 300] {
      let query = WaveformQuery(start: 0.5, end: 0.5 + Double(80 * scale) / 8000, resolution: .scale(scale))
      let image = try Drawing(source, query) { $0.background = .rgb(0xffffff) }.image()
      var last: ClosedRange<Int>?
      for x in 0..<80 {
        // The zero line of the samples' picture is grey.
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

  @Test func bothHalvesOfABarAreAlikeAndBarsStandApart() throws {
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

  // MARK: Lanes, background, size

  @Test func splitChannelsAreLanesOneBelowTheOther() throws {
    let source = try PictureSource(.words())
    var split = query(width: 300)
    split.channels = .split
    let image = try Drawing(source, split) { $0.height = 204 }.image()
    // Lanes of 100 pixels, 4 apart; the second channel is half as loud.
    func largest(_ rows: Range<Int>) -> Int {
      let heights = (0..<300).map { x in rows.filter { image[x, $0].alpha > 9 }.count }
      return heights.max() ?? 0
    }
    let (loudest, softest) = (largest(0..<100), largest(104..<204))
    #expect(abs(loudest - 2 * softest) <= 3 && softest > 20)
    #expect((0..<300).allSatisfy { x in (100..<104).allSatisfy { image[x, $0].alpha == 0 } })
    // A channel alone is its lane, at full height.
    var second = query(width: 300)
    second.channels = .channel(1)
    let alone = try Drawing(source, second) { $0.height = 100 }.image()
    for x in 0..<300 { for y in 0..<100 { #expect(alone[x, y] == image[x, y + 104]) } }
  }

  @Test func theBackgroundIsNothingUnlessOneIsAskedFor() throws {
    let source = try PictureSource(.words())
    let plain = try Drawing(source, query(width: 100)).image()
    #expect(plain[50, 0] == clear && plain[0, 100].alpha > 0)
    let white = try Drawing(source, query(width: 100)) { $0.background = .rgb(0xffffff) }.image()
    #expect((0..<100).allSatisfy { x in (0..<200).allSatisfy { white[x, $0].alpha == 255 } })
    #expect(white[50, 0] == .rgb(0xffffff))
    let glass = PictureColor(red: 1, green: 2, blue: 3, alpha: 64)
    #expect(try Drawing(source, query(width: 100)) { $0.background = glass }.image()[50, 0] == glass)
  }

  @Test func anAmplitudeScaleDrawsSoundLargerAndCutsWhatIsTooLoud() throws {
    let source = try PictureSource(.repeating([8000, -8000, 4000, -2000], frames: 50_000))
    func rows(_ amplitude: PictureAmplitude, over: PictureSource? = nil) throws -> ClosedRange<Int>? {
      try Drawing(source, query(width: 40), over: over) { ($0.amplitude, $0.height) = (amplitude, 201) }.image().drawn(
        20, on: clear)
    }
    #expect(try rows(.factor(1)) == 75...125)
    #expect(try rows(.factor(2)) == 51...149)
    #expect(try rows(.auto) == 0...200 && rows(.factor(50)) == 0...200)
    // The loudest of both fills the height, so that they can still be compared.
    let louder = try PictureSource(.repeating([16_000, -16_000], frames: 20_000))
    let both = try Drawing(source, query(width: 40), over: louder) {
      ($0.amplitude, $0.height) = (.auto, 201)
    }.image()
    #expect(both.drawn(0, on: clear) == 0...200 && both.drawn(39, on: clear) == 50...150)
  }

  // MARK: Windows

  @Test func anEmptyWindowIsAnEmptyPicture() throws {
    let source = try PictureSource(.words())
    for asked in [query(6, width: 120), query(100, 200, width: 120)] {
      let drawing = try Drawing(source, asked) { $0.axis = true }
      let image = try drawing.image()
      #expect(image.width == 120 && image.height == 200 && drawing.picture.ticks.isEmpty)
      #expect((0..<120).allSatisfy { x in (0..<178).allSatisfy { image[x, $0].alpha == 0 } })
    }
    let narrow = try Drawing(source, WaveformQuery(start: 50, resolution: .scale(512))).image()
    #expect(narrow.width == 1)
  }

  @Test func aWindowIsCutToTheRecording() throws {
    let source = try PictureSource(.words())
    let (cut, whole) = (try Drawing(source, query(3, 60, width: 90)), try Drawing(source, query(3, 6, width: 90)))
    #expect(try cut.png() == whole.png() && cut.picture.signature == whole.picture.signature)
  }

  @Test func whatHasNotBeenReadIsEmptyAndWhatHasStaysAsItIs() throws {
    let recording = Recording.words(channels: 1)
    let whole = try Drawing(try PictureSource(recording), WaveformQuery(resolution: .scale(256))).image()
    for available in [0, 1, 5000, 24_000, 47_999] as [Int64] {
      let growing = try PictureSource(recording, available: available)
      let image = try Drawing(growing, WaveformQuery(resolution: .scale(256))).image()
      #expect(image.width == whole.width)
      let ready = Int(available / 256)
      for x in 0..<whole.width {
        if x >= ready {
          #expect(image.drawn(x, on: clear) == nil)
        } else if x < ready - 1 {
          #expect((0..<200).allSatisfy { image[x, $0] == whole[x, $0] }, "column \(x) of \(ready)")
        }
      }
    }
  }

  @Test func whatGrowsIsShownCoarselyWhereItsSamplesCanNotBeReadYet() throws {
    let growing = try PictureSource(.words(channels: 1), available: 40_000)
    let drawing = try Drawing(growing, query(4.5, 5.5, width: 500))
    #expect(!drawing.picture.window.needsSamples && drawing.picture.window.scale == 256)
    let image = try drawing.image()
    #expect((0..<500).allSatisfy { (image.drawn($0, on: clear) != nil) == ($0 < 246) })
    // A length that is only guessed makes the window, too.
    var guessed = growing
    (guessed.extent.totalFrames, guessed.extent.estimatedFrames) = (nil, 80_000)
    let half = try Drawing(guessed, query(width: 100)).image()
    #expect((0..<100).allSatisfy { (half.drawn($0, on: clear) != nil) == ($0 < 50) })
  }

  // MARK: Overlays

  @Test func anOverlayIsAlignedByTimeWhateverItsRateAndLength() throws {
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
      // Where the overlay has ended, the recording alone is left, in its own colour.
      if end == 6 { #expect(image[250, 99].red > image[400, 99].red && image[400, 99].alpha > 0) }
    }
  }

  @Test func anOverlayWithOtherChannelsIsMixedIntoEveryLane() throws {
    var split = query(width: 60)
    split.channels = .split
    let main = try PictureSource(.words(channels: 2))
    let mono = try PictureSource(.repeating([30_000, -30_000], frames: 48_000))
    let image = try Drawing(main, split, over: mono) { ($0.height, $0.overlayColor) = (204, .rgb(0x0000ff)) }.image()
    for top in [0, 104] { #expect(image[30, top + 50] == .rgb(0x0000ff) && image[30, top + 12] == .rgb(0x0000ff)) }
    var second = query(width: 60)
    second.channels = .channel(1)
    let drawing = try Drawing(main, second, over: try PictureSource(.words(channels: 2)))
    #expect(drawing.picture.overlayWindow?.query.channels == .channel(1))
  }

  @Test func anOverlayThatGrowsIsDrawnAsFarAsItHasCome() throws {
    let main = try PictureSource(.repeating([0], frames: 48_000))
    let loud = Recording.repeating([30_000, -30_000], frames: 48_000)
    for (available, columns) in [(0, 0), (25_600, 160), (48_000, 300)] as [(Int64, Int)] {
      let overlay = try PictureSource(loud, available: available)
      let image = try Drawing(main, query(width: 300), over: overlay).image()
      let drawn = (0..<300).filter { image.drawn($0, on: clear)?.lowerBound ?? 99 < 50 }
      // The last, partial point waits for the end.
      #expect(abs(drawn.count - columns) <= 2 && drawn.first ?? 0 == 0)
    }
  }

  // MARK: The axis

  @Test func theAxisStandsBelowWithItsLabelsAndTakesItsHeight() throws {
    let source = try PictureSource(.words())
    let drawing = try Drawing(source, query(width: 600)) { ($0.axis, $0.height) = (true, 120) }
    #expect(
      drawing.picture.ticks.compactMap(\.label) == ["00:00", "00:01", "00:02", "00:03", "00:04", "00:05", "00:06"])
    let image = try drawing.image()
    #expect((0..<600).allSatisfy { image[$0, 98].alpha > 0 }, "the axis's line")
    #expect((0..<600).allSatisfy { image[$0, 119].alpha == 0 })
    // Ticks at the seconds, labels around them.
    for second in 1...5 {
      #expect(image[100 * second, 103].alpha > 0 && image[100 * second + 1, 103].alpha == 0)
      #expect((-20...20).contains { image[100 * second + $0, 112].alpha > 60 })
    }
    // The outermost are moved inside, whole: the first column and the last but one hold no ink.
    #expect((107..<120).allSatisfy { image[0, $0].alpha == 0 && image[599, $0].alpha == 0 })
    #expect((1..<30).contains { image[$0, 112].alpha > 60 } && (570..<599).contains { image[$0, 112].alpha > 60 })
    for (color, dark) in [(PictureColor.rgb(0xffffff), true), (.rgb(0x101418), false)] {
      let labels = try Drawing(source, query(width: 600)) { ($0.axis, $0.background) = (true, color) }.picture.style
      #expect((Int(labels.axisColor.red) < 128) == dark)
    }
  }

  // MARK: Anything at all

  /// What traps takes the whole service with it.
  @Test(arguments: 0..<8 as Range<UInt64>)
  func whateverIsNotRefusedCanBeDrawn(seed: UInt64) throws {
    var generator = SeededGenerator(state: seed)
    func pick<Value>(_ values: [Value]) -> Value { values[Int(generator.next() % UInt64(values.count))] }
    let sources = try [1, 2, 255, 4001, 30_000].map { frames in
      let rate = pick([1, 8000, 44_100, 768_000])
      let recording = Recording.random(frames: frames, channels: pick([1, 2, 3]), sampleRate: rate, seed: seed)
      return try PictureSource(recording, available: pick([nil, nil, 0, Int64(frames / 3)]))
    }
    var drawn = 0
    for _ in 0..<60 {
      let (source, overlay) = (pick(sources), pick([nil, pick(sources)]))
      let length = Double(source.recording.frames) / Double(source.recording.sampleRate)
      let start = length * pick([0, 0, 0.1, 0.5, 0.999, 1, 2])
      let query = WaveformQuery(
        start: start, end: pick([nil, start + length * pick([1e-9, 1e-3, 0.1, 5])]),
        resolution: pick([.width(pick([1, 2, 7, 100, 333])), .scale(pick([1, 2, 100, 256, 300, 70_000, 1 << 24]))]),
        channels: pick([.mix, .split, .channel(0)]))
      let drawing: Drawing
      do {
        drawing = try Drawing(source, query, over: overlay) { style in
          style.height = pick([1, 4, 30, 61, 200])
          style.pixelRatio = pick([1, 1.25, 1.5, 2, 3.7, 4])
          style.axis = pick([true, false])
          style.look = pick([.wave, .bars])
          style.amplitude = pick([.auto, .factor(1), .factor(0.01), .factor(1000)])
          style.background = pick([.rgb(0xffffff), clear])
        }
      } catch {
        switch error as? WaveformError {
        case .pictureOutOfRange("height", _, _, _), .pictureTooWide, .pictureTooLarge: continue
        default: throw error
        }
      }
      let image = try drawing.image()
      let style = drawing.picture.style
      #expect(image.width == Int((Double(drawing.picture.width) * style.pixelRatio).rounded()))
      #expect(image.height == Int((Double(style.height) * style.pixelRatio).rounded()))
      #expect(drawing.svg().hasSuffix("</svg>\n"))
      drawn += 1
    }
    #expect(drawn > 20)
  }

  // MARK: What is refused

  @Test(
    "a picture outside the limits is refused, and the error names them",
    arguments: [
      (1000, 0, 1.0, false, WaveformError.pictureOutOfRange(parameter: "height", value: 0, lowest: 1, highest: 2000)),
      (1000, 2001, 1, false, .pictureOutOfRange(parameter: "height", value: 2001, lowest: 1, highest: 2000)),
      (1000, 7, 1, false, .pictureOutOfRange(parameter: "height", value: 7, lowest: 8, highest: 2000)),
      (1000, 29, 1, true, .pictureOutOfRange(parameter: "height", value: 29, lowest: 30, highest: 2000)),
      (1000, 200, 0.9, false, .pictureOutOfRange(parameter: "pixel_ratio", value: 0.9, lowest: 1, highest: 4)),
      (1000, 200, 4.1, false, .pictureOutOfRange(parameter: "pixel_ratio", value: 4.1, lowest: 1, highest: 4)),
      (0, 200, 1, false, .widthOutOfRange(width: 0, limit: 20_000)),
      (20_001, 200, 1, false, .widthOutOfRange(width: 20_001, limit: 20_000)),
      (10_001, 200, 2, false, .pictureTooWide(parameter: "width", pixels: 20_002, limit: 20_000)),
      (20_000, 420, 1, false, .pictureTooLarge(pixels: 8_400_000, limit: 8_388_608)),
      (2000, 300, 4, false, .pictureTooLarge(pixels: 9_600_000, limit: 8_388_608)),
    ])
  func limits(width: Int, height: Int, ratio: Double, axis: Bool, error: WaveformError) throws {
    let source = try PictureSource(.words(seconds: 1))
    var split = query(width: width)
    split.channels = .split
    #expect(throws: error) {
      try Drawing(source, split) { ($0.height, $0.pixelRatio, $0.axis) = (height, ratio, axis) }
    }
  }

  @Test func whatIsWrongWithAWindowIsWrongWithItsPicture() throws {
    let source = try PictureSource(.words(seconds: 1))
    func refused(_ query: WaveformQuery) -> WaveformError? {
      do throws(WaveformError) {
        _ = try WaveformPicture(query, style: PictureStyle(), of: source.extent)
        return nil
      } catch { return error }
    }
    #expect(refused(query(-1, width: 9)) == .timeOutOfRange(parameter: "start", seconds: -1))
    #expect(refused(query(2, 1, width: 9)) == .windowReversed(start: 2, end: 1))
    #expect(refused(WaveformQuery(resolution: .scale(0))) == .scaleOutOfRange(scale: 0, limit: 1 << 24))
    #expect(refused(WaveformQuery(channels: .channel(2))) == .channelOutOfRange(channel: 2, channels: 2))
    var style = PictureStyle()
    style.amplitude = .factor(0)
    #expect(
      throws: WaveformError.pictureOutOfRange(parameter: "amplitude_scale", value: 0, lowest: 0.01, highest: 1000)
    ) {
      try WaveformPicture(query(width: 9), style: style, of: source.extent)
    }
  }

  // MARK: The signature

  @Test func theSignatureNamesAllThatDecidesThePicture() throws {
    let source = try PictureSource(.words())
    var split = query(width: 100)
    split.channels = .split
    var second = query(width: 100)
    second.channels = .channel(1)
    let styles: [(inout PictureStyle) -> Void] = [
      { $0.height = 201 }, { $0.pixelRatio = 2 }, { $0.color = .rgb(1) }, { $0.overlayColor = .rgb(1) },
      { $0.background = .rgb(1) }, { $0.axis = true }, { $0.look = .bars }, { $0.amplitude = .auto },
      { $0.amplitude = .factor(2) },
    ]
    var drawings = try styles.map { try Drawing(source, query(width: 100), $0) }
    drawings += try [
      query(width: 100), query(width: 101), query(1, width: 100), query(0, 5, width: 100), split, second,
      WaveformQuery(resolution: .scale(512)),
    ].map { try Drawing(source, $0) }
    drawings.append(try Drawing(source, query(width: 100), over: source))
    #expect(Set(drawings.map(\.picture.signature)).count == drawings.count)
    #expect(drawings.allSatisfy { $0.picture.signature.utf8.allSatisfy { (0x21...0x7e).contains($0) && $0 != 0x22 } })
    // What is said in other words is the same picture.
    let same = try Drawing(source, query(0, 9, width: 100)) { $0.color = PictureStyle.teal }
    #expect(same.picture.signature == drawings[styles.count].picture.signature)
  }
}
