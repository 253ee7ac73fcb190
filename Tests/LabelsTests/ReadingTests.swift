import Testing

@testable import Labels

/// Files as programs and people write them.
@Suite struct ReadingTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let format: LabelFormat
    let text: String
    let labels: [Label]
    var testDescription: String { name }

    init(_ name: String, _ format: LabelFormat, _ text: String, _ labels: [Label]) {
      (self.name, self.format, self.text, self.labels) = (name, format, text, labels)
    }
  }

  private static let vtt = [
    Case(
      "identifiers, settings, comments and styles are left out", .vtt,
      """
      WEBVTT - a title
      Kind: captions

      STYLE
      ::cue { color: red }

      NOTE
      a remark

      intro
      00:01.000 --> 00:00:02.500 align:start position:0%
      First
      line

      00:00:03,000-->00:00:04
      Second
      """, [Label(1000, 2500, "First\nline"), Label(3000, 4000, "Second")]),
    Case(
      "inline times are words", .vtt,
      "WEBVTT\n\n00:01.000 --> 00:03.000\nHello <00:01.500><c>big</c> <00:00:02.000>world\n",
      [
        Label(
          1000, 3000, "Hello big world",
          words: [TimedWord(1000, 1500, "Hello"), TimedWord(1500, 2000, "big"), TimedWord(2000, 3000, "world")])
      ]),
    Case(
      "a time without a word is a pause", .vtt,
      "WEBVTT\n\n00:01.000 --> 00:03.000\n<00:01.200>a<00:01.500> <00:02.000>b\n",
      [Label(1000, 3000, "a b", words: [TimedWord(1200, 1500, "a"), TimedWord(2000, 3000, "b")])]),
    Case(
      "each voice of a cue is a label", .vtt,
      "WEBVTT\n\n00:01.000 --> 00:03.000\n<v.loud Ann &amp; Bo>Hi</v>\n<v Cy>Ho",
      [Label(1000, 3000, "Hi", "Ann & Bo"), Label(1000, 3000, "Ho", "Cy")]),
    Case(
      "tags are removed and entities decoded", .vtt,
      "WEBVTT\n\n00:01.000 --> 00:03.000\n<i.x>1 &lt; 2</i> &amp;&amp; <ruby>a<rt>b</rt></ruby> I <3 you & 1 < 2\n",
      [Label(1000, 3000, "1 < 2 && ab I <3 you & 1 < 2")]),
    Case(
      "a line of times ends the cue above it", .vtt, "WEBVTT\n\n00:01.000 --> 00:02.000\na\n00:02.000 --> 00:03.000\nb",
      [Label(1000, 2000, "a"), Label(2000, 3000, "b")]),
  ]

  private static let srt = [
    Case(
      "tags and overrides are left out", .srt,
      "1\n00:00:01,000 --> 00:00:02,000 X1:1 X2:2\n{\\an8}<i>Hello</i><br><FONT color=\"red\">you</font> <3 {x}\n",
      [Label(1000, 2000, "Hello\nyou <3 {x}")]),
    Case(
      "numbers, hours and fractions may be missing", .srt, "\n\n00:01 --> 00:02.5\na\n\n\n7\n1:00:03,25 --> 1:00:04\nb",
      [Label(1000, 2500, "a"), Label(3_603_250, 3_604_000, "b")]),
    Case(
      "unsorted and overlapping cues are sorted", .srt,
      "1\n00:00:05,000 --> 00:00:09,000\nb\n\n2\n00:00:01,000 --> 00:00:06,000\na\n",
      [Label(1000, 6000, "a"), Label(5000, 9000, "b")]),
    Case(
      "a cue may have no text", .srt, "1\n00:00:01,000 --> 00:00:02,000\n\n2\n00:00:03,000 --> 00:00:03,000\n",
      [Label(1000, 2000, ""), Label(3000, 3000, "")]),
  ]

  private static let lrc = [
    Case(
      "a line ends where the next one begins, and the last one after 5 s", .lrc,
      "[ar:Somebody]\n[ti:Song]\n# \n".replacing("# ", with: "[# remark]") + "[00:12.00]One\n[00:15.3]Two\n",
      [Label(12_000, 15_300, "One"), Label(15_300, 20_300, "Two")]),
    Case(
      "a line is repeated at each of its times", .lrc, "[00:12.00][01:45,50]Chorus\n[00:20]Verse\n",
      [Label(12_000, 20_000, "Chorus"), Label(20_000, 105_500, "Verse"), Label(105_500, 110_500, "Chorus")]),
    Case(
      "an offset makes lines earlier", .lrc, "[offset:+500]\n[00:12:50]One\n[00:00.20]Zero\n",
      [Label(0, 12_000, "Zero"), Label(12_000, 17_000, "One")]),
    Case(
      "a line without a text ends the one before", .lrc, "[00:12.00]One\n[00:14.00]\n[90:00.00]Two [x]\n",
      [Label(12_000, 14_000, "One"), Label(5_400_000, 5_405_000, "Two [x]")]),
    Case(
      "enhanced lines have words", .lrc, "[00:12.00] <00:12.00> Some <00:12.50> words <00:13.00>\n[00:20.00]end\n",
      [
        Label(
          12_000, 20_000, "Some words", words: [TimedWord(12_000, 12_500, "Some"), TimedWord(12_500, 13_000, "words")]),
        Label(20_000, 25_000, "end"),
      ]),
    Case(
      "the words of a repeated line move along", .lrc, "[00:10.00][00:20.00]<00:10.00>a<00:10.50>b<00:11.00>\n",
      [
        Label(10_000, 20_000, "ab", words: [TimedWord(10_000, 10_500, "a"), TimedWord(10_500, 11_000, "b")]),
        Label(20_000, 25_000, "ab", words: [TimedWord(20_000, 20_500, "a"), TimedWord(20_500, 21_000, "b")]),
      ]),
    Case(
      "lines at one time last equally long", .lrc, "[00:10.00]Hund\n[00:10.00]dog\n[00:12.00]Katze\n",
      [Label(10_000, 12_000, "Hund"), Label(10_000, 12_000, "dog"), Label(12_000, 17_000, "Katze")]),
  ]

  private static let others = [
    Case(
      "decimal commas, points and frequencies", .audacity, "1,5\t2,25\tab\tc \n\\\t100\t200\n3.000000\t3.000000\n",
      [Label(1500, 2250, "ab\tc"), Label(3000, 3000, "")]),
    Case(
      "the service's own JSON", .json,
      """
      {"labels": [{"start": 1e0, "end": 2.5, "text": " a\\r\\n\\n b\\u00e9 ", "speaker": null},
                  {"end": 1, "start": 0.25, "text": "x", "words": [{"start": 0.5, "end": 1, "text": "x"}]}]}
      """, [Label(250, 1000, "x", words: [TimedWord(500, 1000, "x")]), Label(1000, 2500, "a\nbé")]),
    Case(
      "openai-whisper", .whisper,
      """
      {"text": " Hi there.", "language": "en", "segments": [{"id": 0, "seek": 0, "start": 0.0, "end": 1.5,
       "text": " Hi there.", "tokens": [1, [2]], "temperature": 0.0, "words": [
         {"word": " Hi", "start": 0.0, "end": 0.48, "probability": 0.9},
         {"word": " there.", "start": 0.48, "end": 1.52, "probability": 0.8}]}]}
      """, [Label(0, 1500, "Hi there.", words: [TimedWord(0, 480, "Hi"), TimedWord(480, 1500, "there.")])]),
    Case(
      "WhisperX, with a word that has no times", .whisper,
      """
      {"segments": [{"start": 1, "end": 3, "text": "in 2014 yes", "speaker": "SPEAKER_01", "words": [
        {"word": "in", "start": 1, "end": 1.5, "score": 0.9, "speaker": "SPEAKER_01"}, {"word": "2014"},
        {"word": "yes", "start": 2, "end": 3}]}], "word_segments": []}
      """,
      [
        Label(
          1000, 3000, "in 2014 yes", "SPEAKER_01",
          words: [TimedWord(1000, 1500, "in"), TimedWord(1500, 2000, "2014"), TimedWord(2000, 3000, "yes")])
      ]),
    Case(
      "chapters without ends", .chapters,
      #"{"version":"1.2.0","chapters":[{"startTime":60,"title":"B","url":"x"},{"startTime":0,"title":"A"}]}"#,
      [Label(0, 60_000, "A"), Label(60_000, 60_000, "B")]),
    Case(
      "several words without times", .whisper,
      """
      {"segments": [{"start": 0, "end": 4, "text": "a bc d e", "words": [{"word": "a", "start": 0, "end": 1},
        {"word": "bc"}, {"word": "d"}, {"word": "e", "start": 4, "end": 4}]}]}
      """,
      [
        Label(
          0, 4000, "a bc d e",
          words: [
            TimedWord(0, 1000, "a"), TimedWord(1000, 3000, "bc"), TimedWord(3000, 4000, "d"),
            TimedWord(4000, 4000, "e"),
          ])
      ]),
    Case(
      "a word at the end of its cue", .vtt, "WEBVTT\n\n00:01.000 --> 00:02.000\na <00:02.000>b\n",
      [Label(1000, 2000, "a b", words: [TimedWord(1000, 2000, "a"), TimedWord(2000, 2000, "b")])]),
    Case(
      "lines that start together", .audacity, "2\t3\tc\n1\t2\tb\n1\t3\ta\n",
      [Label(1000, 2000, "b"), Label(1000, 3000, "a"), Label(2000, 3000, "c")]),
    Case(
      "chapters that start together", .chapters,
      #"{"chapters":[{"startTime":1,"title":"A"},{"startTime":1,"title":"B"},{"startTime":3,"title":"C"}]}"#,
      [Label(1000, 3000, "A"), Label(1000, 3000, "B"), Label(3000, 3000, "C")]),
  ]

  @Test("is read as people and programs write it", arguments: vtt + srt + lrc + others)
  func reading(_ example: Case) throws {
    #expect(try parse(example.text, example.format) == example.labels)
  }

  @Test("is recognized by its content", arguments: vtt + srt + lrc + others)
  func identification(_ example: Case) throws {
    #expect(try parse(example.text) == example.labels)
  }

  @Test("reads the same with every line end and encoding", arguments: vtt + srt + lrc + others)
  func encodings(_ example: Case) throws {
    for end in ["\r\n", "\r"] {
      #expect(try parse(example.text.replacing("\n", with: end)) == example.labels, "\(end.debugDescription)")
    }
    let units = Array(example.text.utf16)
    let files: [(String, [UInt8])] = [
      ("UTF-8 with a mark", [0xEF, 0xBB, 0xBF] + Array(example.text.utf8)),
      ("UTF-16BE", [0xFE, 0xFF] + units.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }),
      ("UTF-16LE", [0xFF, 0xFE] + units.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }),
    ]
    for (name, bytes) in files {
      #expect(try LabelFile(parsing: bytes).labels == example.labels, "\(name)")
    }
  }

  @Test func latin1IsReadIfTheFileIsNotUTF8() throws {
    let bytes = Array("1.0\t2.0\tGr".utf8) + [0xFC, 0xDF, 0x65, 0x20, 0x80, 0x0A]
    #expect(try LabelFile(parsing: bytes).labels == [Label(1000, 2000, "Grüße €")])
  }

  @Test func aFileNamesItsLanguageAndTitle() throws {
    let vtt = try LabelFile(parsing: Array("WEBVTT\nKind: captions\nLanguage: de\n\n".utf8))
    #expect(vtt == LabelFile(language: "de"))
    let lrc = try LabelFile(parsing: Array("[ti: A Song]\n[la:fr]\n".utf8))
    #expect(lrc == LabelFile(language: "fr", title: "A Song"))
    let whisper = try LabelFile(parsing: Array(#"{"language":"en","segments":[]}"#.utf8))
    #expect(whisper == LabelFile(language: "en"))
  }

  @Test func withoutEndsTheRecordingEndsTheLastLabel() throws {
    let duration = MediaTime.ms(14_000)
    #expect(try parse("[00:12.00]One", duration: duration) == [Label(12_000, 14_000, "One")])
    #expect(try parse("[00:20.00]Late", duration: duration) == [Label(20_000, 20_000, "Late")])
    let chapters = #"{"chapters":[{"startTime":2,"title":"A"}]}"#
    #expect(try parse(chapters, duration: duration) == [Label(2000, 14_000, "A")])
    #expect(try parse(chapters, duration: .ms(1000)) == [Label(2000, 2000, "A")])
  }

  @Test func timesAreRoundedToMicroseconds() throws {
    let lines = "-0.0\t0\ta\n0.00000149\t0.0000015\ta\n1.9999996\t2.5e0\tb\n2.9999996e0\t3\tc\n"
    let file = try LabelFile(parsing: Array(lines.utf8), as: .audacity)
    #expect(file.labels.map(\.start.microseconds) == [0, 1, 2_000_000, 3_000_000])
    #expect(file.labels.map(\.end.microseconds) == [0, 2, 2_500_000, 3_000_000])
  }
}
