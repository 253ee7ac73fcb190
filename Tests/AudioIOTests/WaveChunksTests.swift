import SoundFiles
import Terms
import Testing

@testable import AudioIO

/// What a WAV file says besides its sound is kept, moved, or named.
struct WaveChunksTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func point(_ id: UInt64, _ frame: UInt64) -> [UInt8] {
    little(id, 4) + little(frame, 4) + Array("data".utf8) + little(0, 8) + little(frame, 4)
  }

  private func name(_ id: UInt64, _ text: String) -> [UInt8] { chunk("labl", little(id, 4) + Array(text.utf8) + [0]) }

  private func bext(_ frames: UInt64) -> [UInt8] {
    chunk("bext", [UInt8](repeating: 65, count: 338) + little(frames, 8) + [UInt8](repeating: 0, count: 256))
  }

  private func iXML(_ high: Int, _ low: Int) -> [UInt8] {
    let name = "TIMESTAMP_SAMPLES_SINCE_MIDNIGHT"
    return chunk("iXML", Array("<X><\(name)_HI>\(high)</\(name)_HI><\(name)_LO>\(low)</\(name)_LO></X>".utf8))
  }

  private var info: [UInt8] {
    chunk("LIST", Array("INFO".utf8) + chunk("INAM", Array("Rain\0".utf8)) + chunk("IMUS", Array("Bach\0".utf8)))
  }

  /// Returns a file of 1000 frames with these chunks on both sides of its sound.
  private func file(before: [UInt8] = [], after: [UInt8] = []) throws -> String {
    try folder.file(riff(waveFormat() + before + chunk("data", [UInt8](repeating: 1, count: 2000)) + after))
  }

  /// Writes 1000 frames with tags to a file and returns its bytes and what it lacks.
  private func written(_ tags: SoundTags, _ container: AudioContainer = .wav, channels: Int = 1) throws -> (
    bytes: [UInt8], leftOut: [String]
  ) {
    let format = AudioFormat(
      container: container, codec: container == .flac ? .flacS16 : .pcmS16, sampleRate: 8000, channels: channels)
    var writer = try AudioWriter(creating: folder("out"), format: format, expectedFrames: 999, tags: tags)
    var quantised: [Int16] = []
    try writer.write([Float](repeating: 0.5, count: 999 * channels).span, quantised: &quantised)
    let leftOut = writer.leftOut
    try writer.finish()
    return (try contents(folder("out")), leftOut)
  }

  @Test("a copy has the chunks of its source, and a length that includes them", arguments: [AudioContainer.wav, .rf64])
  func copy(container: AudioContainer) throws {
    let chunks = bext(7) + info + chunk("cue ", little(1, 4) + point(1, 5)) + chunk("smpl", [1, 2, 3])
    let (bytes, leftOut) = try written(
      SoundTags(path: file(before: bext(7), after: chunks.dropFirst(bext(7).count).map(\.self))), container)
    #expect(bytes.suffix(chunks.count) == chunks[...] && leftOut.isEmpty)
    let stated = container == .wav ? little(UInt64(bytes.count - 8), 4)[...] : little(UInt64(bytes.count - 8), 8)[...]
    let place = container == .wav ? 4 : 20
    #expect(bytes[place..<place + stated.count] == stated)
    #expect(try decode(folder("out")).count == 999)
    // The title is there once.
    #expect(SoundTags(path: folder("out")) == SoundTags(path: folder("file")))
  }

  @Test("a part has the points within it, moved, their names, and the time of its beginning")
  func part() throws {
    let points = chunk("cue ", little(3, 4) + point(1, 99) + point(2, 100) + point(3, 600))
    let names = chunk("LIST", Array("adtl".utf8) + name(1, "one") + name(2, "two!") + name(3, "three"))
    var tags = SoundTags(
      path: try file(before: bext(1 << 33), after: points + names + iXML(1, 0xFFFF_FFFF) + chunk("smpl", [1, 2])))
    tags.cut(from: 100, count: 500)
    let (bytes, leftOut) = try written(tags)
    let expected =
      bext(1 << 33 + 100) + chunk("cue ", little(1, 4) + point(2, 0))
      + chunk("LIST", Array("adtl".utf8) + name(2, "two!")) + iXML(2, 99)
    #expect(bytes.suffix(expected.count) == expected[...])
    #expect(leftOut == ["the chunk “smpl”"])
    tags.cut(from: 400, count: 1)
    #expect(try !written(tags).bytes.contains(Array("cue ".utf8)))
  }

  @Test("chunks that a container can't hold, that are too long or that no longer hold are named")
  func leftOut() throws {
    let gain = chunk("id3 ", Array("ID3".utf8) + Array("r\0e\0playgain_TRACK_gain".utf8))
    let tags = SoundTags(
      path: try file(
        before: chunk("long", [UInt8](repeating: 0, count: 1 << 20 + 1)) + bext(1), after: info + gain + iXML(0, 1)))
    #expect(try written(tags).leftOut == ["the chunk “long”", "the chunk “id3”"])
    #expect(
      try written(tags, .flac).leftOut == [
        "the description of Broadcast Wave (bext)", "iXML", "the chunk “long”", "the chunk “id3”",
      ])
  }

  @Test("damaged chunks harm nothing")
  func damaged() throws {
    for broken in [
      chunk("cue ", little(0xFFFF_FFFF, 4) + [1, 2]), chunk("cue ", []), chunk("LIST", Array("adtl".utf8) + [1, 2]),
      chunk("LIST", Array("adtllabl".utf8) + little(0xFFFF_FFFF, 4) + little(1, 4)), chunk("bext", [1]),
      chunk("iXML", Array("<TIMESTAMP_SAMPLES_SINCE_MIDNIGHT_LO>".utf8)), chunk("odd ", [1], claiming: 0xFFFF_FFFF),
    ] {
      var tags = SoundTags(path: try file(after: broken))
      tags.cut(from: .max - 1, count: 1)
      #expect(try written(tags).bytes.count >= 2042)
    }
  }

  @Test("what the channels are is kept, or named", arguments: [0xB, 0x7, 0x33, 0x3F, 0x60F] as [UInt64])
  func channels(mask: UInt64) throws {
    let count = mask.nonzeroBitCount
    let extensible =
      little(0xFFFE, 2) + little(UInt64(count), 2) + little(8000, 4) + little(UInt64(16_000 * count), 4)
      + little(UInt64(2 * count), 2) + little(16, 2) + little(22, 2) + little(16, 2) + little(mask, 4)
      + little(1, 2) + [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71]
    let source = riff(chunk("fmt ", extensible) + chunk("data", [UInt8](repeating: 1, count: 200 * count)))
    let tags = SoundTags(path: try folder.file(source))
    #expect(tags.channels.count == count)
    for container in [AudioContainer.wav, .rf64, .caf] where container != .caf || mask != 0x60F {
      let made = try written(tags, container, channels: count)
      #expect(SoundTags(path: folder("out")).channels == tags.channels && made.leftOut.isEmpty, "\(container)")
    }
    #expect(try written(tags, .flac, channels: count).leftOut == (mask == 0xB ? ["what its channels are"] : []))
    // Another number of channels.
    #expect(try written(tags, .wav, channels: 1).bytes[20] == 1)
  }
}
