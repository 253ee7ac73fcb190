import Testing

@testable import Labels

/// Lyrics and chapters in the comments of FLAC and Ogg files, and in what ffprobe reports.
@Suite struct EmbeddedCommentTests {
  private static let clock = EmbeddedClock(duration: .ms(60_000))

  private static func comments(_ pairs: [String]) -> [UInt8] {
    Bytes.little(4, 4) + Array("test".utf8) + Bytes.little(pairs.count, 4)
      + pairs.flatMap { Bytes.little($0.utf8.count, 4) + Array($0.utf8) }
  }

  private func read(_ bytes: [UInt8]) -> EmbeddedLabels {
    var (file, labels) = (MemoryBytes(bytes), EmbeddedLabels())
    labels.addTags(of: &file, Self.clock)
    return labels
  }

  private static func flac(_ comments: [UInt8]) -> [UInt8] {
    Array("fLaC".utf8) + [0] + Bytes.big(34, 3) + [UInt8](repeating: 1, count: 34) + [0x84]
      + Bytes.big(comments.count, 3) + comments
  }

  private static func page(_ serial: UInt8, _ lengths: [UInt8], _ content: [UInt8]) -> [UInt8] {
    Array("OggS".utf8) + [0, 2] + [UInt8](repeating: 0, count: 8) + [serial, 0, 0, 0] + [UInt8](repeating: 0, count: 8)
      + [UInt8(lengths.count)] + lengths + content
  }

  /// Puts packets into pages of at most 255 pieces, as one stream.
  private static func ogg(_ packets: [[UInt8]], beside: [UInt8] = []) -> [UInt8] {
    let pieces = packets.flatMap { packet in
      stride(from: 0, through: packet.count, by: 255).map { Array(packet[$0...].prefix(255)) }
    }
    let first = page(7, pieces[..<1].map { UInt8($0.count) }, pieces[0])
    let others = stride(from: 1, to: pieces.count, by: 3).flatMap { start in
      let part = pieces[start..<min(start + 3, pieces.count)]
      return page(7, part.map { UInt8($0.count) }, part.flatMap(\.self)) + beside
    }
    return first + beside + others
  }

  private static let pairs = [
    "TITLE=x", "CHAPTER002=00:00:30.500", "chapter001=00:00:00.000", "CHAPTER001NAME=Intro", "Chapter002Name=Zwei ü",
    "CHAPTER002URL=x", "LYRICS=One\ntwo", "SYNCEDLYRICS=[00:01.00]One\n[00:02.00]two", "=x", "nothing",
  ]

  private static let expected = [
    EmbeddedTrack(kind: .lyrics, labels: [Label(0, 60_000, "One\ntwo")]),
    EmbeddedTrack(kind: .lyrics, labels: [Label(1000, 2000, "One"), Label(2000, 7000, "two")]),
    EmbeddedTrack(kind: .chapters, labels: [Label(0, 30_500, "Intro"), Label(30_500, 60_000, "Zwei ü")]),
  ]

  @Test(
    "comments are found in every container that has them",
    arguments: ["FLAC", "FLAC behind ID3", "Vorbis", "Opus", "Speex", "Ogg FLAC", "beside another stream"])
  func containers(name: String) {
    let comments = Self.comments(Self.pairs + ["PICTURE=" + String(repeating: "A", count: 70_000)])
    let vorbis = [[1] + Array("vorbis".utf8), [3] + Array("vorbis".utf8) + comments]
    let foreign = Self.page(8, [5], Array("fisbo".utf8))
    let file: [UInt8] =
      switch name {
      case "FLAC": Self.flac(comments)
      case "FLAC behind ID3": ID3Bytes.tag(3, [("TALB", [0, 65])]) + Self.flac(comments)
      case "Vorbis": Self.ogg(vorbis)
      case "Opus": Self.ogg([Array("OpusHead".utf8), Array("OpusTags".utf8) + comments])
      case "Speex": Self.ogg([Array("Speex   ".utf8), comments])
      case "Ogg FLAC": Self.ogg([[0x7F] + Array("FLAC".utf8), [1, 0, 0, 1, 9], [0x84] + Bytes.big(9, 3) + comments])
      default: foreign + Self.ogg(vorbis, beside: foreign)
      }
    let found = read(file)
    #expect(found.tracks == Self.expected && found.faults == [])
  }

  @Test("damaged comments are reported, and those before the damage are used")
  func damage() {
    let whole = Self.comments(["LYRICS=One", "TITLE=long enough"])
    let cut = Array(whole.dropLast(5))
    #expect(read(Self.flac(cut)).tracks.map(\.labels) == [[Label(0, 60_000, "One")]])
    #expect(read(Self.flac(cut)).faults == [.damaged(.tags)])
    #expect(read(Self.flac([255, 255, 255, 255])).faults == [.damaged(.tags)])
    let badTime = read(Self.flac(Self.comments(["CHAPTER001=half past", "CHAPTER002=00:00:01.000"])))
    #expect(badTime.tracks.map(\.labels) == [[Label(1000, 60_000, "")]])
    #expect(badTime.faults == [.invalid(.chapters, .badTime)])
    let file = Self.ogg([Array("OpusHead".utf8), Array("OpusTags".utf8) + whole])
    for length in 0...file.count { _ = read(Array(file[..<length])) }
  }

  @Test func chaptersAndLyricsOfFFprobeAreOnTheRecordingsClock() {
    let report = """
      {"chapters":[{"start_time":"2.500000","end_time":"5.000000","tags":{"title":"Zwei \\u00fc"}},
       {"id":0,"start_time":"-0.500000","end_time":"2.500000","tags":{"title":"One","x":"y"}},
       {"start_time":"0.000000","end_time":"0.400000"},{"start_time":"5.000000","end_time":"N/A"},
       {"start_time":"N/A"}],
       "format":{"tags":{"lyrics":"la\\nla","title":"x"}}}
      """
    var labels = EmbeddedLabels()
    labels.add(probe: Array(report.utf8), EmbeddedClock(duration: .ms(10_000), zero: 500_000))
    #expect(
      labels.tracks == [
        EmbeddedTrack(
          kind: .chapters,
          labels: [Label(0, 2000, "One"), Label(2000, 4500, "Zwei ü"), Label(4500, 10_000, "")]),
        EmbeddedTrack(kind: .lyrics, labels: [Label(0, 10_000, "la\nla")]),
      ])
    #expect(labels.faults == [])
    for report in ["", "{", "[]", "{\"chapters\":[{\"start_time\":1}]}"] {
      var labels = EmbeddedLabels()
      labels.add(probe: Array(report.utf8), Self.clock)
      #expect(labels.tracks == [] && labels.faults == [.damaged(.chapters)], "\(report)")
    }
  }

  @Test("cue points and regions of WAV are labels")
  func cuePoints() {
    func number(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(value >> (8 * $0) & 0xFF) } }
    func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
      Array(name.utf8) + number(content.count) + content + [UInt8](repeating: 0, count: content.count % 2)
    }
    func point(_ id: Int, _ frame: Int) -> [UInt8] {
      number(id) + number(0) + Array("data".utf8) + number(0) + number(0) + number(frame)
    }
    let format = chunk("fmt ", [1, 0, 1, 0] + number(8000) + number(8000) + [1, 0, 8, 0])
    let cue = number(3) + point(1, 2000) + point(2, 8000) + point(3, 12_000)
    let list =
      chunk("labl", number(1) + Array("Intro\0".utf8)) + chunk("labl", number(2) + [0x56, 0xE9, 0])
      + chunk("ltxt", number(2) + number(4000) + Array("rgn ".utf8) + number(0) + number(0))
      + chunk("note", number(3) + Array("a note\0".utf8))
    func file(_ cue: [UInt8]) -> [UInt8] {
      Array("RIFF\0\0\0\0WAVE".utf8) + format + chunk("data", [0, 0, 0]) + chunk("cue ", cue)
        + chunk("LIST", Array("adtl".utf8) + list)
    }
    let whole = read(file(cue))
    let labels = [Label(250, 250, "Intro"), Label(1000, 1500, "Vé"), Label(1500, 1500, "a note")]
    #expect(whole.tracks == [EmbeddedTrack(kind: .labels, name: "Cue points", labels: labels)])
    #expect(whole.faults == [])
    let short = read(file(cue.dropLast(30) + []))
    #expect(short.tracks.map(\.labels.count) == [1] && short.faults == [.damaged(.cuePoints)])
  }

  @Test func tracksAreHandedOverUnchanged() throws {
    var labels = read(Self.flac(Self.comments(Self.pairs)))
    labels.add(
      .subtitles, .transcript, name: "A \"name\"", language: "EN-gb",
      [Label(0, 10, "x", "S", words: [TimedWord(1, 2, "x")])])
    // A long name is cut, and doesn't end with the blank before the cut.
    let name = String(repeating: "Æ", count: 99)
    labels.add(.subtitles, .transcript, name: "\(name) a long name", [Label(0, 10, "x")])
    #expect(labels.tracks.last?.name == name + " a")
    labels.add(.subtitles, .transcript, name: "x\(name) a", [Label(0, 10, "x")])
    #expect(labels.tracks.last?.name == "x" + name)
    let again = try EmbeddedLabels(parsing: labels.document())
    #expect(again.tracks == labels.tracks && again.tracks.contains { $0.language == "en-gb" })
    for bad in ["", "{\"tracks\":[{\"labels\":[]}]}", "{\"tracks\":[{\"kind\":\"x\",\"labels\":[]}]}", "{\"x\":1}"] {
      #expect(throws: LabelsError.self) { try EmbeddedLabels(parsing: Array(bad.utf8)) }
    }
  }
}
