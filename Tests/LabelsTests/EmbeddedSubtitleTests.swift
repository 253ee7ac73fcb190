import Testing

@testable import Labels

/// Subtitles in Matroska, written byte by byte.
@Suite struct EmbeddedSubtitleTests {
  private static func element(_ id: Int, _ content: [UInt8], hasUnknownSize: Bool = false) -> [UInt8] {
    let count = id > 0xFFFFFF ? 4 : id > 0xFFFF ? 3 : id > 0xFF ? 2 : 1
    let size = hasUnknownSize ? [1] + [UInt8](repeating: 0xFF, count: 7) : [8] + Bytes.big(content.count, 4)
    return Bytes.big(id, count) + size + content
  }

  private static func track(_ number: Int, _ codec: String, _ more: [UInt8] = [], type: Int = 17) -> [UInt8] {
    element(
      0xAE, element(0xD7, [UInt8(number)]) + element(0x83, [UInt8(type)]) + element(0x86, Array(codec.utf8)) + more)
  }

  private static func cue(_ track: Int, _ time: Int, _ duration: Int?, _ text: String) -> [UInt8] {
    let block = [0x80 | UInt8(track)] + Bytes.big(time, 2) + [0] + Array(text.utf8)
    guard let duration else { return element(0xA3, block) }
    return element(0xA0, element(0xA1, block) + element(0x9B, Bytes.big(duration, 3)))
  }

  private static func file(_ tracks: [UInt8], _ clusters: [(time: Int, cues: [UInt8])], unknownSizes: Bool = false)
    -> [UInt8]
  {
    let info = element(0x1549_A966, element(0x2AD7B1, Bytes.big(1_000_000, 3)) + element(0x4D80, Array("test".utf8)))
    let body = clusters.flatMap {
      element(0x1F43_B675, element(0xE7, Bytes.big($0.time, 4)) + $0.cues, hasUnknownSize: unknownSizes)
    }
    return element(0x1A45_DFA3, element(0x4282, Array("matroska".utf8)))
      + element(0x1853_8067, info + element(0x1654_AE6B, tracks) + body, hasUnknownSize: unknownSizes)
  }

  private func read(_ bytes: [UInt8], zero: Int64 = 0) -> EmbeddedLabels {
    var (file, labels) = (MemoryBytes(bytes), EmbeddedLabels())
    labels.addSubtitles(ofMatroska: &file, EmbeddedClock(duration: .ms(60_000), zero: zero))
    return labels
  }

  private static func language(_ text: String) -> [UInt8] { element(0x22B59C, Array(text.utf8)) }

  @Test("each text codec is read", arguments: [false, true])
  func codecs(unknownSizes: Bool) {
    let tracks =
      Self.track(1, "V_VP8", type: 1)
      + Self.track(2, "S_TEXT/UTF8", Self.language("ger") + Self.element(0x536E, Array("Für alle".utf8)))
      + Self.track(3, "S_TEXT/WEBVTT") + Self.track(4, "D_WEBVTT/SUBTITLES", Self.language("und"))
      + Self.track(5, "S_TEXT/ASS") + Self.track(6, "S_HDMV/PGS")
    let vtt = "<v Ann>Hi <00:00:00.500>all &amp; you"
    let first =
      Self.cue(1, 0, nil, "picture") + Self.cue(2, 100, 900, "<i>One</i> <3\n{\\an8}two") + Self.cue(3, 1000, 2000, vtt)
      + Self.cue(4, 1000, 2000, "id\nalign:left\n" + vtt.replacing("00:00.500", with: "00:01.500"))
      + Self.cue(6, 0, 10, "picture")
      + Self.cue(5, 1000, 2000, #"0,0,Default,Bo,0,0,0,,{\k50\b1}Hel{\kf25}lo,{\k10} you{\p1}m 0 0{\p0}\Nx"#)
    let second = Self.cue(5, 0, 1000, "1,0,Default,,0,0,0,,plain, text") + Self.cue(2, 500, nil, "late")
    let found = read(Self.file(tracks, [(0, first), (10_000, second)], unknownSizes: unknownSizes))
    let ann = Label(
      1000, 3000, "Hi all & you", "Ann",
      words: [TimedWord(1000, 1500, "Hi"), TimedWord(1500, 3000, "all & you")])
    let bo = Label(
      1000, 3000, "Hello, you\nx", "Bo",
      words: [TimedWord(1000, 1500, "Hel"), TimedWord(1500, 1750, "lo,"), TimedWord(1750, 3000, "you\nx")])
    #expect(
      found.tracks == [
        EmbeddedTrack(
          kind: .transcript, name: "Für alle", language: "ger",
          labels: [Label(100, 1000, "One <3\ntwo"), Label(10_500, 60_000, "late")]),
        EmbeddedTrack(kind: .transcript, name: "Subtitles", labels: [ann]),
        EmbeddedTrack(kind: .transcript, name: "Subtitles", labels: [ann]),
        EmbeddedTrack(kind: .transcript, name: "Subtitles", labels: [bo, Label(10_000, 11_000, "plain, text")]),
      ])
    #expect(found.faults == [])
  }

  @Test("subtitles are on the recording's clock, and those before it begins are left out")
  func clock() {
    let vtt = "\n\n<00:00:01.500>b"
    let cues =
      Self.cue(1, 0, 400, "gone") + Self.cue(1, 400, 200, "cut") + Self.cue(1, 1000, 500, "a")
      + Self.cue(2, 1000, 1000, vtt)
    let tracks = Self.track(1, "S_TEXT/UTF8") + Self.track(2, "D_WEBVTT/METADATA")
    let found = read(Self.file(tracks, [(0, cues)]), zero: 500_000).tracks
    #expect(found.first?.labels == [Label(0, 100, "cut"), Label(500, 1000, "a")])
    #expect(found.last?.labels == [Label(500, 1500, "b", words: [TimedWord(1000, 1500, "b")])])
    #expect(found.last?.kind == .labels)
  }

  @Test("a unit of time other than a millisecond counts, and a common start is put back")
  func units() {
    let settings = Self.element(
      0x6D80,
      Self.element(
        0x6240,
        Self.element(
          0x5034, Self.element(0x4254, [3]) + Self.element(0x4255, Array("He".utf8)))))
    var bytes = Self.file(Self.track(1, "S_TEXT/UTF8", settings), [(2, Self.cue(1, 1, 1, "llo"))])
    let unit = Bytes.big(1_000_000, 3)
    let place = bytes.indices.first { bytes[$0...].starts(with: unit) } ?? 0
    bytes.replaceSubrange(place..<place + 3, with: Bytes.big(10_000_000, 3))
    #expect(read(bytes).tracks.map(\.labels) == [[Label(30, 40, "Hello")]])
  }

  @Test("what can't be read is reported, and the rest is used")
  func faults() {
    let zlib = Self.element(0x6D80, Self.element(0x6240, Self.element(0x5034, Self.element(0x4254, [0]))))
    let secret = Self.element(0x6D80, Self.element(0x6240, Self.element(0x5035, [])))
    for coding in [zlib, secret] {
      let tracks = Self.track(1, "S_TEXT/UTF8", coding) + Self.track(2, "S_TEXT/UTF8")
      let found = read(Self.file(tracks, [(0, Self.cue(1, 0, 9, "x") + Self.cue(2, 0, 9, "y"))]))
      #expect(found.tracks.map(\.labels) == [[Label(0, 9, "y")]] && found.faults == [.unsupported(.subtitles)])
    }
    let backward = Self.cue(1, 0, 9000, "<00:00:05.000>a <00:00:02.000>b") + Self.cue(1, 9000, 1000, "<00:00:00.500>c")
    let found = read(Self.file(Self.track(1, "S_TEXT/WEBVTT"), [(0, backward)]))
    #expect(
      found.tracks.map(\.labels)
        == [[Label(0, 9000, "a b"), Label(9000, 10_000, "c", words: [TimedWord(9500, 10_000, "c")])]])
    #expect(found.faults == [.invalid(.subtitles, .wordsRunBackward)])
    let deep = read(
      Self.file(
        Self.track(1, "S_TEXT/UTF8"),
        [(0, Self.cue(1, 0, 9, String(repeating: "<b>", count: 10_000)) + Self.cue(1, 9, 9, "x"))]))
    #expect(deep.tracks.map(\.labels) == [[Label(9, 18, "x")]])
    #expect(deep.faults == [.invalid(.subtitles, .tagsTooDeep(limit: 64))])
  }

  @Test("no cut and no changed byte crashes the reader")
  func robustness() {
    let cues =
      Self.cue(1, 0, 9, "<00:00:00.005>a") + Self.cue(2, 5, 9, #"0,0,D,B,0,0,0,,{\k5}a\N{\k6"#)
      + Self.cue(1, 9, nil, "b")
    let file = Self.file(Self.track(1, "S_TEXT/WEBVTT") + Self.track(2, "S_TEXT/SSA"), [(0, cues), (40, cues)])
    for length in 0...file.count { _ = read(Array(file[..<length])) }
    for index in file.indices {
      var changed = file
      for byte in [0, 1, 0x7F, 0xFF] as [UInt8] {
        changed[index] = byte
        _ = read(changed)
      }
    }
    let cut = read(Array(file.dropLast(3)))
    #expect(cut.faults == [.damaged(.subtitles)] && cut.tracks.count == 2)
  }

  @Test func moreCuesThanATrackMayHaveAreLeftOut() {
    let many = (0..<70).flatMap { _ in Self.cue(1, 0, 9, String(repeating: "a", count: 1 << 19)) }
    let found = read(Self.file(Self.track(1, "S_TEXT/UTF8"), [(0, many)]))
    #expect(found.faults == [.tooMuch(.subtitles), .tooLong(.subtitles)])
    #expect(found.tracks.first?.labels.count == 64)
  }
}
