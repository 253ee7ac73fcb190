import SoundFiles
import Terms
import Testing

@testable import AudioIO

/// A file's tags are copied with its sound.
struct SoundTagsTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  static let kinds: [(AudioContainer, AudioCodec)] = [
    (.wav, .pcmS16), (.rf64, .pcmS24), (.aiff, .pcmS16), (.flac, .flacS16), (.ogg, .vorbis), (.ogg, .opus),
    (.mp3, .mp3),
  ]

  private func make(_ name: String, _ container: AudioContainer, _ codec: AudioCodec, _ tags: SoundTags) throws
    -> String
  {
    let format = AudioFormat(container: container, codec: codec, sampleRate: 48_000, channels: 1)
    var writer = try AudioWriter(creating: folder(name), format: format, expectedFrames: 10_000, tags: tags)
    var quantised: [Int16] = []
    try writer.write(swell(frames: 10_000, channels: 1, sampleRate: 48_000).span, quantised: &quantised)
    try writer.finish()
    return folder(name)
  }

  /// Returns the tags of a WAV file with an INFO list.
  private func tagged(title: String, artist: String) throws -> SoundTags {
    func info(_ id: String, _ text: String) -> [UInt8] { chunk(id, Array(text.utf8) + [0]) }
    let list = chunk("LIST", Array("INFO".utf8) + info("INAM", title) + info("IART", artist))
    return SoundTags(
      path: try folder.file("tagged", riff(waveFormat() + list + chunk("data", [UInt8](repeating: 0, count: 800)))))
  }

  @Test("title and artist are in the written file, and its sound is unchanged", arguments: kinds)
  func kept(container: AudioContainer, codec: AudioCodec) throws {
    let tags = try tagged(title: "Gespräch am Fluß", artist: "A. Müller")
    #expect(tags != SoundTags())
    let (plain, named) = (try make("plain", container, codec, SoundTags()), try make("named", container, codec, tags))
    #expect(SoundTags(path: plain) == SoundTags())
    let found = SoundTags(path: named)
    #expect(found.texts == tags.texts)
    #expect(try decode(named) == decode(plain))
  }

  @Test("a working copy gets the texts of its original, but a file with texts keeps them")
  func added() throws {
    var texts = FileTags()
    (texts.title, texts.composer, texts.comment) = ("Regen", "Bach", "c")
    var (tags, own) = (SoundTags(), try tagged(title: "Own", artist: "A"))
    tags.add(texts)
    own.add(texts)
    #expect(try SoundTags(path: make("named", .wav, .pcmS16, tags)).texts == tags.texts && tags.texts.count == 2)
    #expect(own == (try tagged(title: "Own", artist: "A")))
  }

  @Test("a file that isn't sound has no tags, and empty texts are ignored")
  func none() throws {
    #expect(SoundTags(path: folder("missing")) == SoundTags())
    #expect(SoundTags(path: try folder.file([1, 2, 3])) == SoundTags())
    #expect(try tagged(title: "", artist: "").texts.isEmpty)
  }
}
