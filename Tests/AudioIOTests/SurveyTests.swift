import AudioIO
import Testing

struct SurveyTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func make(_ container: AudioContainer, _ codec: AudioCodec, rate: Int, frames: Int, name: String = "a") throws
    -> [UInt8]
  {
    let format = AudioFormat(container: container, codec: codec, sampleRate: rate, channels: 1)
    try encode(swell(frames: frames, channels: 1, sampleRate: rate), to: folder(name), format)
    return try contents(folder(name))
  }

  @Test(arguments: [8000, 16_000, 22_050, 44_100, 48_000])
  func allFramesOfAnMP3AreCountedButTheOneThatCounts(rate: Int) throws {
    _ = try make(.mp3, .mp3, rate: rate, frames: 100_000)
    let survey = try MPEGSurvey(path: folder("a"))
    #expect(survey.hasCount)
    #expect((100_000...100_000 + 4 * 1152).contains(Int(survey.frames)))
  }

  @Test func tagsAndGarbageBetweenFramesAreNoFrames() throws {
    let sound = try make(.mp3, .mp3, rate: 44_100, frames: 50_000)
    let plain = try MPEGSurvey(path: folder("a"))
    let tag: [UInt8] = Array("ID3".utf8) + [4, 0, 0, 0, 0, 1, 0] + [UInt8](repeating: 0xFF, count: 128)
    let tagged = try folder.file("b", tag + sound + Array("TAG".utf8) + [UInt8](repeating: 0xFF, count: 125))
    let found = try MPEGSurvey(path: tagged)
    #expect(found.frames == plain.frames && found.hasCount)
  }

  @Test func whatIsNotMPEGHasNoFrames() throws {
    var generator = SeededGenerator(state: 5)
    let noise = (0..<400_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
    #expect(try MPEGSurvey(path: try folder.file(noise)).frames < 20 * 1152)
    #expect(try MPEGSurvey(path: try folder.file([])).frames == 0)
    #expect(try MPEGSurvey(path: try folder.file([0xFF, 0xFB])).frames == 0)
  }

  @Test(arguments: [AudioCodec.vorbis, .opus])
  func anOggFileTellsItsEndAndItsChains(codec: AudioCodec) throws {
    let first = try make(.ogg, codec, rate: 48_000, frames: 200_000)
    let whole = try OggSurvey(path: folder("a"))
    #expect(whole.hasEnd && !whole.isChained)
    let second = try make(.ogg, codec, rate: 48_000, frames: 90_000, name: "b")
    let chained = try OggSurvey(path: try folder.file("c", first + second))
    #expect(chained.hasEnd && chained.isChained)
    let cut = try OggSurvey(path: try folder.file("d", Array(first.dropLast(1))))
    #expect(!cut.hasEnd && !cut.isChained)
    #expect(try !OggSurvey(path: try folder.file("e", Array(first.prefix(5000)))).hasEnd)
  }
}
