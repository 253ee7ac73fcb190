import SoundFiles
import Terms
import Testing

@testable import AudioIO

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
    let stream = try #require(survey.streams.first)
    #expect(survey.streams.count == 1 && survey.isMostlyFrames && survey.foreignBytes == 0 && !survey.isCut)
    #expect(stream.claimedFrames == stream.frames)
    #expect(stream.samples == 100_000)
  }

  private func tag(_ content: [UInt8]) -> [UInt8] {
    Array("ID3".utf8) + [4, 0, 0, 0, 0, UInt8(content.count >> 7), UInt8(content.count & 0x7F)] + content
  }

  @Test func tagsAndGarbageAreNotTakenForFrames() throws {
    let sound = try make(.mp3, .mp3, rate: 44_100, frames: 50_000)
    let plain = try MPEGSurvey(path: folder("a"))
    let picture = [UInt8](repeating: 0xFF, count: 300)
    let tagged = tag(picture) + sound + Array("TAG".utf8) + [UInt8](repeating: 0xFF, count: 125)
    let found = try MPEGSurvey(path: try folder.file("b", tagged))
    #expect(found.streams.map(\.frames) == plain.streams.map(\.frames))
    #expect(found.foreignBytes == 0)
    let middle = try #require(plain.streams[0].ranges.first).lowerBound + Int64(sound.count / 2)
    let between = try MPEGSurvey(
      path: try folder.file("c", Array(sound[..<Int(middle)]) + picture + tag(picture) + sound[Int(middle)...]))
    // The frame cut in two has kept its header.
    #expect(between.streams.map(\.frames) == plain.streams.map(\.frames))
    #expect(between.streams[0].ranges.count == 2 && between.foreignBytes > 600)
  }

  @Test func aTagWithAnOversizedLengthHidesNothing() throws {
    let sound = try make(.mp3, .mp3, rate: 44_100, frames: 50_000)
    let liar = Array("ID3".utf8) + [4, 0, 0, 0x7F, 0x7F, 0x7F, 0x7F]
    let found = try MPEGSurvey(path: try folder.file("b", sound + liar + sound))
    #expect(found.streams.map(\.samples) == [50_000, 50_000])
  }

  @Test func otherDataHasNoFrames() throws {
    var generator = SeededGenerator(state: 5)
    let noise = (0..<400_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
    #expect(try !MPEGSurvey(path: try folder.file(noise)).isMostlyFrames)
    #expect(try MPEGSurvey(path: try folder.file([])).streams.isEmpty)
    #expect(try MPEGSurvey(path: try folder.file([0xFF, 0xFB])).streams.isEmpty)
  }

  @Test(arguments: [AudioCodec.vorbis, .opus])
  func anOggFileReportsItsEndAndItsStreams(codec: AudioCodec) throws {
    let first = try make(.ogg, codec, rate: 48_000, frames: 200_000)
    let (one, two) = (Int64(first.count), try make(.ogg, codec, rate: 48_000, frames: 90_000, name: "b"))
    let whole = try OggSurvey(path: folder("a"))
    #expect(whole.hasEnd && whole.streams == [0..<one])
    let chained = try OggSurvey(path: try folder.file("c", first + two))
    #expect(chained.hasEnd && chained.streams == [0..<one, one..<one + Int64(two.count)])
    let cut = try OggSurvey(path: try folder.file("d", Array(first.dropLast(1))))
    #expect(!cut.hasEnd && cut.streams.count == 1 && cut.streams[0].upperBound < one)
    // A stream that was cut before the next one began, and other bytes.
    let joined = try OggSurvey(path: try folder.file("e", Array(first.dropLast(9)) + [1, 2, 3] + two))
    #expect(joined.hasEnd && joined.streams.map(\.count).last == two.count)
    #expect(joined.streams.count == 2 && joined.streams[0].upperBound < one)
  }
}
