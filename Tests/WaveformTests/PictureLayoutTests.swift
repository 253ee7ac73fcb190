import Testing

@testable import Waveform

struct PictureLayoutTests {
  private let clear = PictureColor.clear

  // MARK: Lanes, background, size

  @Test func splitChannelsAreStackedLanes() throws {
    let source = try PictureSource(.words())
    var split = query(width: 300)
    split.channels = .split
    let image = try Drawing(source, split) { $0.height = 204 }.image()
    // Lanes of 100 pixels with a gap of 4; the second channel is half as loud.
    func largest(_ rows: Range<Int>) -> Int {
      let heights = (0..<300).map { x in rows.filter { image[x, $0].alpha > 9 }.count }
      return heights.max() ?? 0
    }
    let (loudest, softest) = (largest(0..<100), largest(104..<204))
    #expect(abs(loudest - 2 * softest) <= 3 && softest > 20)
    #expect((0..<300).allSatisfy { x in (100..<104).allSatisfy { image[x, $0].alpha == 0 } })
    // A single channel is drawn like its lane, but at full height.
    var second = query(width: 300)
    second.channels = .channel(1)
    let alone = try Drawing(source, second) { $0.height = 100 }.image()
    for x in 0..<300 { for y in 0..<100 { #expect(alone[x, y] == image[x, y + 104]) } }
  }

  @Test func theBackgroundIsTransparentByDefault() throws {
    let source = try PictureSource(.words())
    let plain = try Drawing(source, query(width: 100)).image()
    #expect(plain[50, 0] == clear && plain[0, 100].alpha > 0)
    let white = try Drawing(source, query(width: 100)) { $0.background = .rgb(0xffffff) }.image()
    #expect((0..<100).allSatisfy { x in (0..<200).allSatisfy { white[x, $0].alpha == 255 } })
    #expect(white[50, 0] == .rgb(0xffffff))
    let glass = PictureColor(red: 1, green: 2, blue: 3, alpha: 64)
    #expect(try Drawing(source, query(width: 100)) { $0.background = glass }.image()[50, 0] == glass)
  }

  @Test func anAmplitudeScaleEnlargesAndClips() throws {
    let source = try PictureSource(.repeating([8000, -8000, 4000, -2000], frames: 50_000))
    func rows(_ amplitude: PictureAmplitude, over: PictureSource? = nil) throws -> ClosedRange<Int>? {
      try Drawing(source, query(width: 40), over: over) { ($0.amplitude, $0.height) = (amplitude, 201) }.image().drawn(
        20, on: clear)
    }
    #expect(try rows(.factor(1)) == 75...125)
    #expect(try rows(.factor(2)) == 51...149)
    #expect(try rows(.auto) == 0...200 && rows(.factor(50)) == 0...200)
    let window = try WaveformPicture(query(width: 40), style: PictureStyle(), of: source.extent).window
    var envelope = Envelope(try source.slice(window), lane: 0, start: 0, framesPerColumn: 1250, columns: 40)
    envelope.amplify(50)
    #expect((envelope.tops[20], envelope.bottoms[20], envelope.loudness[20]) == (1, -1, 1))
    // The loudest peak of both fills the height, so that they remain comparable.
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

  @Test func aWindowIsClampedToTheRecording() throws {
    let source = try PictureSource(.words())
    let (cut, whole) = (try Drawing(source, query(3, 60, width: 90)), try Drawing(source, query(3, 6, width: 90)))
    #expect(try cut.png() == whole.png() && cut.picture.signature == whole.picture.signature)
  }

  @Test func unreadPartsAreEmptyAndReadPartsDoNotChange() throws {
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

  @Test func aGrowingRecordingIsDrawnCoarselyUntilItsSamplesCanBeRead() throws {
    let growing = try PictureSource(.words(channels: 1), available: 40_000)
    let drawing = try Drawing(growing, query(4.5, 5.5, width: 500))
    #expect(!drawing.picture.window.needsSamples && drawing.picture.window.scale == 256)
    let image = try drawing.image()
    #expect((0..<500).allSatisfy { (image.drawn($0, on: clear) != nil) == ($0 < 246) })
    // An estimated length also determines the window.
    var guessed = growing
    (guessed.extent.totalFrames, guessed.extent.estimatedFrames) = (nil, 80_000)
    let half = try Drawing(guessed, query(width: 100)).image()
    #expect((0..<100).allSatisfy { (half.drawn($0, on: clear) != nil) == ($0 < 50) })
  }

  // MARK: The axis

  @Test func theAxisAndItsLabelsTakeTheirHeightAtTheBottom() throws {
    let source = try PictureSource(.words())
    let drawing = try Drawing(source, query(width: 600)) { ($0.axis, $0.height) = (true, 120) }
    #expect(
      drawing.picture.ticks.compactMap(\.label) == ["00:00", "00:01", "00:02", "00:03", "00:04", "00:05", "00:06"])
    let image = try drawing.image()
    #expect((0..<600).allSatisfy { image[$0, 98].alpha > 0 }, "the axis's line")
    #expect((0..<600).allSatisfy { image[$0, 119].alpha == 0 })
    // Ticks at the seconds, with labels around them.
    for second in 1...5 {
      #expect(image[100 * second, 103].alpha > 0 && image[100 * second + 1, 103].alpha == 0)
      #expect((-20...20).contains { image[100 * second + $0, 112].alpha > 60 })
    }
    // The outermost labels are moved entirely inside: the first and last columns have no ink.
    #expect((107..<120).allSatisfy { image[0, $0].alpha == 0 && image[599, $0].alpha == 0 })
    #expect((1..<30).contains { image[$0, 112].alpha > 60 } && (570..<599).contains { image[$0, 112].alpha > 60 })
    for (color, dark) in [(PictureColor.rgb(0xffffff), true), (.rgb(0x101418), false)] {
      let labels = try Drawing(source, query(width: 600)) { ($0.axis, $0.background) = (true, color) }.picture.style
      #expect((Int(labels.axisColor.red) < 128) == dark)
    }
  }
}
