import Randomness
import Testing

@testable import Waveform

struct PictureLimitsTests {
  private let clear = PictureColor.clear

  // MARK: Anything at all

  /// A trap would end the whole service.
  @Test(arguments: 0..<8 as Range<UInt64>)
  func everyAcceptedRequestCanBeDrawn(seed: UInt64) throws {
    var generator = SeededGenerator(state: TestSeed.of(seed))
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

  @Test func aWindowsErrorsApplyToItsPicture() throws {
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

  @Test func theSignatureCoversEverythingThatAffectsThePicture() throws {
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
    // Different wording for the same picture.
    let same = try Drawing(source, query(0, 9, width: 100)) { $0.color = PictureStyle.teal }
    #expect(same.picture.signature == drawings[styles.count].picture.signature)
  }
}
