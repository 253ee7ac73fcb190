import Testing

@testable import Labels

/// Lyrics and chapters in ID3 tags, written byte by byte as the specifications say.
@Suite struct EmbeddedID3Tests {
  private static let clock = EmbeddedClock(duration: .ms(60_000), mpegFrameMicroseconds: 26_000)

  /// Reads the tags of a file that begins with these bytes.
  private func read(_ bytes: [UInt8]) -> EmbeddedLabels {
    var (file, labels) = (MemoryBytes(bytes), EmbeddedLabels())
    labels.addTags(of: &file, Self.clock)
    return labels
  }

  private static func uslt(_ text: String, language: String = "eng", name: String = "") -> [UInt8] {
    [3] + Array(language.utf8) + Array(name.utf8) + [0] + Array(text.utf8)
  }

  private static func sylt(
    _ entries: [(String, Int)], unit: UInt8 = 2, type: UInt8 = 1, encoding: UInt8 = 3
  ) -> [UInt8] {
    func coded(_ text: String) -> [UInt8] {
      switch encoding {
      case 1: [0xFF, 0xFE] + text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] } + [0, 0]
      case 2: text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } + [0, 0]
      case 0: text.unicodeScalars.map { UInt8($0.value) } + [0]
      default: Array(text.utf8) + [0]
      }
    }
    return [encoding] + Array("deu".utf8) + [unit, type] + coded("Näme")
      + entries.flatMap { coded($0.0) + Bytes.big($0.1, 4) }
  }

  private static func chapter(_ name: String, _ start: Int, _ end: Int, _ title: String, _ version: UInt8) -> [UInt8] {
    Array(name.utf8) + [0] + Bytes.big(start, 4) + Bytes.big(end, 4) + [UInt8](repeating: 0xFF, count: 8)
      + ID3Bytes.frame("TIT2", [3] + Array(title.utf8), version)
  }

  private static func table(_ name: String, isTop: Bool, _ children: [String], _ title: String) -> [UInt8] {
    Array(name.utf8) + [0, isTop ? 3 : 1, UInt8(children.count)] + children.flatMap { Array($0.utf8) + [0] }
      + ID3Bytes.frame("TIT2", [3] + Array(title.utf8), 4)
  }

  @Test("lyrics without times are one label as long as the recording", arguments: [2, 3, 4] as [UInt8])
  func plainLyrics(version: UInt8) {
    let found = read(ID3Bytes.tag(version, [("USLT", Self.uslt("One\r\n\r\ntwo", name: "Album"))]))
    let expected = EmbeddedTrack(
      kind: .lyrics, name: "Album", language: "eng", labels: [Label(0, 60_000, "One\n\ntwo")])
    #expect(found.tracks == [expected] && found.faults == [])
  }

  @Test func lyricsThatAreLRCHaveTimes() {
    let found = read(ID3Bytes.tag(3, [("USLT", Self.uslt("[ar:x]\n[00:01.00]One\n[00:02.50]two\n", language: "XXX"))]))
    #expect(found.tracks.map(\.labels) == [[Label(1000, 2500, "One"), Label(2500, 7500, "two")]])
    #expect(found.tracks.first?.language == nil)
    // A section's name in brackets isn't a time, and a text with one stray time is still a text.
    for text in ["[Chorus: x]\nOne", "One\n[00:01.00]two"] {
      #expect(read(ID3Bytes.tag(3, [("USLT", Self.uslt(text))])).tracks.map(\.labels) == [[Label(0, 60_000, text)]])
    }
  }

  @Test("every encoding of text is read", arguments: [0, 1, 2, 3] as [UInt8])
  func encodings(encoding: UInt8) {
    let entries = [("Süß", 1000), ("Ende", 4000)]
    let found = read(ID3Bytes.tag(4, [("SYLT", Self.sylt(entries, encoding: encoding))]))
    let expected = [Label(1000, 4000, "Süß"), Label(4000, 9000, "Ende")]
    #expect(found.tracks == [EmbeddedTrack(kind: .lyrics, name: "Näme", language: "deu", labels: expected)])
  }

  @Test func syllablesAreWordsAndLineBreaksSeparateLines() {
    let entries = [("Stran", 1000), ("gers", 1200), (" here", 1500), ("\nBye", 3000), (" now", 3500), ("\n", 4000)]
    let found = read(ID3Bytes.tag(3, [("SYLT", Self.sylt(entries))])).tracks
    #expect(
      found.map(\.labels) == [
        [
          Label(
            1000, 3000, "Strangers here",
            words: [TimedWord(1000, 1200, "Stran"), TimedWord(1200, 1500, "gers"), TimedWord(1500, 3000, "here")]),
          Label(3000, 8000, "Bye now", words: [TimedWord(3000, 3500, "Bye"), TimedWord(3500, 4000, "now")]),
        ]
      ])
  }

  @Test("times may count milliseconds or frames of sound")
  func units() {
    let frames = read(ID3Bytes.tag(4, [("SYLT", Self.sylt([("a", 100)], unit: 1))]))
    #expect(frames.tracks.first?.labels.first?.start == .ms(2600))
    var (file, labels) = (MemoryBytes(ID3Bytes.tag(4, [("SYLT", Self.sylt([("a", 100)], unit: 1))])), EmbeddedLabels())
    labels.addTags(of: &file, EmbeddedClock(duration: nil))
    #expect(labels.tracks == [] && labels.faults == [.unsupported(.timedLyrics)])
  }

  @Test(
    "the type of a synchronized text says what it is",
    arguments: [(0, .lyrics), (1, .lyrics), (2, .transcript), (5, .labels), (7, nil)]
      as [(UInt8, EmbeddedTrack.Kind?)])
  func types(type: UInt8, kind: EmbeddedTrack.Kind?) {
    #expect(read(ID3Bytes.tag(4, [("SYLT", Self.sylt([("a", 1)], type: type))])).tracks.first?.kind == kind)
  }

  @Test("chapters are sorted, and those that the table of contents omits are left out", arguments: [3, 4] as [UInt8])
  func chapters(version: UInt8) {
    let frames: [(String, [UInt8])] = [
      ("CTOC", Self.table("toc", isTop: true, ["b", "part"], "Contents")),
      ("CTOC", Self.table("part", isTop: false, ["a", "toc"], "Part")),
      ("CHAP", Self.chapter("b", 30_000, 0xFFFF_FFFF, "Zwei ü", version)),
      ("CHAP", Self.chapter("a", 0, 30_000, "One", version)),
      ("CHAP", Self.chapter("hidden", 10_000, 20_000, "Picture", version)),
    ]
    let all = read(ID3Bytes.tag(version, frames))
    #expect(all.tracks.first?.labels == [Label(0, 30_000, "One"), Label(30_000, 60_000, "Zwei ü")])
    #expect(all.tracks.first?.kind == .chapters && all.faults == [])
    if version == 4 { #expect(all.tracks.first?.name == "Contents") }
    let untabled = read(ID3Bytes.tag(version, Array(frames[2...])))
    #expect(untabled.tracks.first?.labels.map(\.text) == ["One", "Picture", "Zwei ü"])
  }

  @Test func unsynchronizedTagsAndFramesAreRead() {
    // UTF-16 has FF FE, which unsynchronization changes to FF 00 FE.
    let content = Self.sylt([("a\u{FF}", 1000)], encoding: 1)
    let expected = [[Label(1000, 6000, "aÿ")]]
    for version in [2, 3, 4] as [UInt8] {
      let tag = ID3Bytes.tag(version, [("SYLT", content)], isUnsynchronized: true)
      #expect(read(tag).tracks.map(\.labels) == expected, "2.\(version)")
    }
    let frame = ID3Bytes.frame(
      "SYLT", Bytes.big(content.count, 4) + ID3Bytes.unsynchronized(content), 4, flags: [0, 3])
    #expect(read(ID3Bytes.tag(4, frames: frame)).tracks.map(\.labels) == expected)
  }

  @Test func extendedHeadersGroupsAndPlainSizesAreRead() {
    let content = Self.uslt(String(repeating: "long ", count: 60))
    for (version, header) in [(3, Bytes.big(6, 4) + [0, 0, 0, 0, 0, 0]), (4, [0, 0, 0, 6, 1, 0])] as [(UInt8, [UInt8])]
    {
      let frame = ID3Bytes.frame("USLT", content, version)
      #expect(read(ID3Bytes.tag(version, flags: 0x40, frames: header + frame)).tracks.count == 1, "2.\(version)")
    }
    let grouped = ID3Bytes.frame("USLT", [7] + content, 4, flags: [0, 0x40])
    #expect(read(ID3Bytes.tag(4, frames: grouped)).tracks.count == 1)
    // iTunes wrote plain sizes in 2.4.
    let plain = Array("USLT".utf8) + Bytes.big(content.count, 4) + [0, 0] + content
    let next = ID3Bytes.frame("USLT", Self.uslt("second"), 4)
    #expect(read(ID3Bytes.tag(4, frames: plain + next)).tracks.map(\.labels.first?.text).last == "second")
  }

  @Test func encodedFramesAreReported() {
    for (version, flags) in [(3, [0, 0x80]), (4, [0, 0x08]), (4, [0, 0x04])] as [(UInt8, [UInt8])] {
      let frame = ID3Bytes.frame("USLT", Self.uslt("a"), version, flags: flags)
      let found = read(ID3Bytes.tag(version, frames: frame))
      #expect(found.tracks == [] && found.faults == [.unsupported(.lyrics)])
    }
  }

  @Test func tagsAreFoundAtTheEndAndInChunks() {
    let tag = ID3Bytes.tag(4, [("USLT", Self.uslt("a"))])
    let footer = Array("3DI".utf8) + tag[3..<10]
    var withFooter = tag
    withFooter[5] |= 0x10
    let sound = [UInt8](repeating: 0xFF, count: 100)
    let chunk = Bytes.little(tag.count, 4) + tag + (tag.count % 2 == 1 ? [0] : [])
    let data = Array("data".utf8) + Bytes.little(4, 4) + [1, 2, 3, 4]
    let bigChunk = Array("ID3 ".utf8) + Bytes.big(tag.count, 4) + tag
    let files: [(String, [UInt8])] = [
      ("end", sound + withFooter + footer), ("end, before ID3v1", sound + withFooter + footer + Bytes.id3v1),
      ("WAV", Array("RIFF".utf8) + Bytes.little(999, 4) + Array("WAVE".utf8) + data + Array("id3 ".utf8) + chunk),
      ("AIFF", Array("FORM".utf8) + Bytes.big(999, 4) + Array("AIFF".utf8) + bigChunk),
      ("second tag", ID3Bytes.tag(3, [("TALB", [0, 65])]) + tag + sound),
    ]
    for (name, bytes) in files {
      let found = read(bytes)
      #expect(found.tracks.map(\.labels) == [[Label(0, 60_000, "a")]] && found.faults == [], "\(name)")
    }
  }

  @Test("damaged frames are reported, and the others are used")
  func damage() {
    let good = ("USLT", Self.uslt("good"))
    let cases: [(String, [UInt8], EmbeddedPart)] = [
      ("USLT", [3, 101], .lyrics), ("USLT", [9] + Array("engx".utf8), .lyrics),
      ("SYLT", [3] + Array("eng".utf8), .timedLyrics),

      ("SYLT", Array(Self.sylt([("a", 1)]).dropLast(2)), .timedLyrics),
      ("CHAP", Array("a".utf8), .chapters), ("CHAP", Self.chapter("a", 0xFFFF_FFFF, 5, "x", 4), .chapters),
      ("CTOC", Array("a".utf8) + [0, 3, 9, 65], .chapters),
    ]
    for (id, content, part) in cases {
      let found = read(ID3Bytes.tag(4, [(id, content), good]))
      #expect(found.tracks.map(\.labels) == [[Label(0, 60_000, "good")]], "\(id)")
      #expect(found.faults == [.damaged(part)], "\(id)")
    }
    let cut = Array(ID3Bytes.tag(4, [good]).dropLast(30))
    #expect(read(cut).faults == [.damaged(.tags)])
    #expect(read(Array("ID3".utf8) + [9, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4]).faults == [.damaged(.tags)])
    #expect(read(Array("ID3".utf8) + [4, 0, 0, 0x7F, 0x7F, 0x7F, 0x7F]).faults == [.tooMuch(.tags)])
  }

  @Test("no beginning of a tag and no changed byte crashes the reader")
  func robustness() {
    let tag = ID3Bytes.tag(
      4,
      [
        ("USLT", Self.uslt("a")), ("SYLT", Self.sylt([("a\n", 1), ("b", 2)], encoding: 1)),
        ("CHAP", Self.chapter("a", 0, 5, "x", 4)), ("CTOC", Self.table("toc", isTop: true, ["a"], "y")),
      ])
    for length in 0...tag.count { _ = read(Array(tag[..<length])) }
    for index in tag.indices {
      var changed = tag
      for byte in [0, 0x7F, 0xFF] as [UInt8] {
        changed[index] = byte
        _ = read(changed)
      }
    }
  }

  @Test func moreThanTheLimitsIsLeftOut() {
    let frames = (0..<70).map { ("USLT", Self.uslt("\($0)")) }
    let many = read(ID3Bytes.tag(4, frames))
    #expect(many.tracks.count == 64 && many.faults == [.tooMuch(.lyrics)])
    let long = String(repeating: "[00:01.00]" + String(repeating: "a", count: 60_000) + "\n", count: 157)
    var large = read(ID3Bytes.tag(4, [("USLT", Self.uslt(long)), ("USLT", Self.uslt(long)), ("USLT", Self.uslt("c"))]))
    #expect(large.tracks.count == 3)
    let document = large.document()
    #expect(document.count <= LabelLimits.bytes && large.faults == [.tooMuch(.lyrics)])
    #expect(large.tracks.map(\.labels.count) == [157, 1])
  }
}

/// Bytes of files.
enum Bytes {
  static func big(_ number: Int, _ count: Int) -> [UInt8] {
    (0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }
  static func little(_ number: Int, _ count: Int) -> [UInt8] { big(number, count).reversed() }
  static let id3v1 = Array("TAG".utf8) + [UInt8](repeating: 0, count: 125)
}

/// ID3 tags, as their specifications say.
enum ID3Bytes {
  static func safe(_ number: Int) -> [UInt8] { (0..<4).reversed().map { UInt8(number >> (7 * $0) & 0x7F) } }

  static func unsynchronized(_ bytes: [UInt8]) -> [UInt8] {
    bytes.flatMap { $0 == 0xFF ? [0xFF, 0] : [$0] }
  }

  static func frame(_ id: String, _ content: [UInt8], _ version: UInt8, flags: [UInt8] = [0, 0]) -> [UInt8] {
    guard version > 2 else {
      let short = ["USLT": "ULT", "SYLT": "SLT", "TIT2": "TT2"][id] ?? (id.count == 3 ? id : "COM")
      return Array(short.utf8) + Bytes.big(content.count, 3) + content
    }
    return Array(id.utf8) + (version == 4 ? safe(content.count) : Bytes.big(content.count, 4)) + flags + content
  }

  static func tag(_ version: UInt8, flags: UInt8 = 0, frames: [UInt8]) -> [UInt8] {
    Array("ID3".utf8) + [version, 0, flags] + safe(frames.count + 20) + frames + [UInt8](repeating: 0, count: 20)
  }

  static func tag(_ version: UInt8, _ frames: [(String, [UInt8])], isUnsynchronized: Bool = false) -> [UInt8] {
    let changes = isUnsynchronized && version == 4
    let all = frames.flatMap { frame($0.0, changes ? unsynchronized($0.1) : $0.1, version) }
    let body = isUnsynchronized && version < 4 ? unsynchronized(all) : all
    return tag(version, flags: isUnsynchronized ? 0x80 : 0, frames: body)
  }
}
