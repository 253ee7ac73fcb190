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
      "decimal commas, points and frequencies", .audacity,
      "1,5\t2,25\tab\tc \n\\\t100\t200,5\n3.000000\t3.000000\n\\\t-1.000000\t900.0\n",
      [Label(1500, 2250, "ab\tc", minHz: 100, maxHz: 200.5), Label(3000, 3000, "", maxHz: 900)]),
    Case(
      "the service's own JSON", .json,
      """
      {"labels": [{"start": 1e0, "end": 2.5, "text": " a\\r\\n\\n b\\u00e9 ", "speaker": null},
                  {"end": 1, "start": 0.25, "text": "x", "words": [{"start": 0.5, "end": 1, "text": "x"}]}]}
      """, [Label(250, 1000, "x", words: [TimedWord(500, 1000, "x")]), Label(1000, 2500, "a\n\nbé")]),
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
      #"{"version":"1.2.0","chapters":[{"startTime":60,"title":"B","x":"y"},{"startTime":0,"title":"A"}]}"#,
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

  private static let lenient = [
    Case(
      "cues need no blank lines", .srt,
      "1\n00:00:01,000 --> 00:00:02,000\none\n2\n00:00:03,000 --> 00:00:04,000\ntwo\n3\n00:00:05,000 --> 00:00:06,000\n3",
      [Label(1000, 2000, "one"), Label(3000, 4000, "two"), Label(5000, 6000, "3")]),
    Case(
      "a text may have blank lines, and lines of digits", .srt,
      "1\n00:00:00,000 --> 00:00:01,000\nA\n\n\nB\n7\n\n2\n00:00:01,000 --> 00:00:02,000\nC\n\n9\n",
      [Label(0, 1000, "A\n\nB\n7"), Label(1000, 2000, "C\n\n9")]),
    Case(
      "without numbers, a line of digits is text", .srt, "00:01 --> 00:02\n42\n00:03 --> 00:04\nb",
      [Label(1000, 2000, "42"), Label(3000, 4000, "b")]),
    Case(
      "fractions of milliseconds", .srt, "00:00:00.0006 --> 00:00:01.0006\na",
      [Label(start: MediaTime(clamping: 600), end: MediaTime(clamping: 1_000_600), text: "a")]),
    Case(
      "a cue right behind the header", .vtt, "WEBVTT\n00:00.000 --> 00:01.000\nA\n\n00:01.000 --> 00:02.000\nB",
      [Label(0, 1000, "A"), Label(1000, 2000, "B")]),
    Case(
      "arrows without blanks, or with many", .vtt,
      "WEBVTT\n\n00:01.000-->00:02.000align:start\nno spaces\n\n00:03.000   \t-->\t  00:04.000\nmany blanks",
      [Label(1000, 2000, "no spaces"), Label(3000, 4000, "many blanks")]),
    Case(
      "seconds alone", .vtt, "WEBVTT\n\n0.000 --> 3.480\n<v S1>A\n\n4.240 --> 66.600\nB",
      [Label(0, 3480, "A", "S1"), Label(4240, 66_600, "B")]),
    Case(
      "a NUL is U+FFFD, and more blank lines separate cues", .vtt,
      "WEBVTT\n\n\n\n\u{0}id\n00:01.000 --> 00:02.000\na\u{0}b\n\n\n00:03.000 --> 00:04.000\nc",
      [Label(1000, 2000, "a\u{FFFD}b"), Label(3000, 4000, "c")]),
  ]

  private static let ofTools = [
    Case(
      "whisper.cpp", .whisper,
      """
      {"systeminfo":"AVX","params":{"language":"en"},"result":{"language":"en"},"transcription":[
        {"timestamps":{"from":"00:00:00,000","to":"00:00:02,500"},"offsets":{"from":0,"to":2500},"text":" Good morning",
         "tokens":[{"text":"[_BEG_]","offsets":{"from":0,"to":0},"id":50364,"p":0.9},
           {"text":" Good","offsets":{"from":0,"to":1000}},{"text":" mor","offsets":{"from":1200,"to":1500}},
           {"text":"ning","offsets":{"from":1500,"to":2500},"t_dtw":-1}]},
        {"offsets":{"from":2500,"to":4000},"text":" and welcome"}]}
      """,
      [
        Label(0, 2500, "Good morning", words: [TimedWord(0, 1000, "Good"), TimedWord(1200, 2500, "morning")]),
        Label(2500, 4000, "and welcome"),
      ]),
    Case(
      "OpenAI's words of the whole file", .whisper,
      """
      {"task":"transcribe","language":"english","duration":2.0,"text":"Hello world","segments":[
        {"id":0,"start":0.0,"end":1.0,"text":"Hello world","avg_logprob":NaN,"x":[-Infinity,Infinity]},
        {"start":1,"end":2,"text":"again"}],
       "words":[{"word":"Hello","start":0.0,"end":0.5},{"word":"world","start":0.6,"end":1.0},
        {"word":"again","start":1.2,"end":2.5}]}
      """,
      [
        Label(0, 1000, "Hello world", words: [TimedWord(0, 500, "Hello"), TimedWord(600, 1000, "world")]),
        Label(1000, 2000, "again", words: [TimedWord(1200, 2000, "again")]),
      ]),
    Case(
      "words without segments", .whisper,
      """
      {"segments":null,"words":[{"word":"One","start":0,"end":0.5},{"word":"two.","start":0.5,"end":1},
        {"word":"Three","start":1,"end":1.5},{"word":"four","start":3,"end":4,"probability":NaN}]}
      """,
      [
        Label(0, 1000, "One two.", words: [TimedWord(0, 500, "One"), TimedWord(500, 1000, "two.")]),
        Label(1000, 1500, "Three", words: [TimedWord(1000, 1500, "Three")]),
        Label(3000, 4000, "four", words: [TimedWord(3000, 4000, "four")]),
      ]),
    Case(
      "Podcasting 2.0's transcript", .transcript,
      #"{"version":"1.0.0","segments":[{"speaker":"Ann","startTime":0.5,"endTime":2.5,"body":"Hello"}]}"#,
      [Label(500, 2500, "Hello", "Ann")]),
    Case(
      "whisper.cpp's table", .csv, "0,2500,\" Good \"\"morning\"\",\nyou\"\n2500,4000,SPEAKER_0,\" and welcome\"\n",
      [Label(0, 2500, "Good \"morning\",\nyou"), Label(2500, 4000, "and welcome", "SPEAKER_0")]),
    Case(
      "Whisper's table", .tsv, "start\tend\ttext\n0\t2500\tGood \"morning\n2500\t4000\tand\twelcome\n",
      [Label(0, 2500, "Good \"morning"), Label(2500, 4000, "and\twelcome")]),
    Case(
      "times and titles", .times,
      "Chapters:\n00:00:00 Introduction\n• (05:30) - Scripture 1\n00:10:00 – 00:12:00 | Psalm\n1:04:14 - Chapter 3\n",
      [
        Label(0, 330_000, "Introduction"), Label(330_000, 600_000, "Scripture 1"), Label(600_000, 720_000, "Psalm"),
        Label(3_854_000, 3_854_000, "Chapter 3"),
      ]),
    Case(
      "SBV", .sbv, "0:00:01.000,0:00:02.500\nOne\ntwo[br]three\n\n0:00:03.000,0:00:04.000\nFour\n",
      [Label(1000, 2500, "One\ntwo\nthree"), Label(3000, 4000, "Four")]),
    Case(
      "SubStation Alpha", .ass,
      """
      [Script Info]
      Title: T
      [V4+ Styles]
      Style: Default,Arial
      [Events]
      Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
      Comment: 0,0:00:00.00,0:00:01.00,Default,,0,0,0,,no
      Dialogue: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,{\\k50}a{\\k50}b
      Dialogue: 0,0:00:01.00,0:00:02.50,Default,Ann,0,0,0,,{\\i1}Hello,\\Nyou
      """,
      [
        Label(1000, 2500, "Hello,\nyou", "Ann"),
        Label(3000, 4000, "ab", words: [TimedWord(3000, 3500, "a"), TimedWord(3500, 4000, "b")]),
      ]),
    Case(
      "TTML", .ttml,
      """
      <?xml version="1.0" encoding="UTF-8"?><!-- c -->
      <tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttp="p" xmlns:ttm="m" xml:lang="de" ttp:frameRate="25">
        <head><ttm:agent xml:id="a"><ttm:name type="full">Ann</ttm:name></ttm:agent><styling/></head>
        <body begin="1s"><div>
          <p begin="00:00:00:05" end="00:00:01.5" ttm:agent="a">Gr&#xFC;&#223;e
              &amp; <span style="x">mehr</span><br/>Zeile</p>
          <p begin="2000ms" dur="25f"/>
          <p begin="2s" dur="1s"><span begin="0s" end="0.5s">Hel</span><span begin="0.5s">lo</span></p>
          <p begin="4s"><![CDATA[last]]> &nbsp;</p>
        </div></body>
      </tt>
      """,
      [
        Label(1200, 2500, "Grüße & mehr\nZeile", "Ann"),
        Label(3000, 4000, "Hello", words: [TimedWord(3000, 3500, "Hel"), TimedWord(3500, 4000, "lo")]),
        Label(5000, 5000, "last &nbsp;"),
      ]),
    Case(
      "TTML with times of spans alone, and of ticks", .ttml,
      """
      <tt:tt xmlns:tt="t" tickRate="10"><tt:body><tt:p><tt:span begin="10t" end="20t">a</tt:span>
      <tt:span begin="1:00:00" end="1:00:01">b</tt:span></tt:p></tt:body></tt:tt>
      """, [Label(1000, 2000, "a"), Label(3_600_000, 3_601_000, "b")]),
    Case(
      "Apple's lyrics", .ttml,
      """
      <tt itunes:timing="Word"><body><div begin="10.5" end="20"><p begin="10.5" end="12"><span begin="10.5" \
      end="11">Oh</span> <span begin="0:11.2" end="12">you</span></p></div></body></tt>
      """,
      [Label(10_500, 12_000, "Oh you", words: [TimedWord(10_500, 11_000, "Oh"), TimedWord(11_200, 12_000, "you")])]),
    Case(
      "Podlove's chapters", .podlove,
      """
      <psc:chapters version="1.2" xmlns:psc="http://podlove.org/simple-chapters">\
      <psc:chapter start="00:00:00.000" title="Begr&#xFC;&#xDF;ung" href="http://example.org/"/>\
      <psc:chapter start='00:14:10.5' title="Two" image="i"/></psc:chapters>
      """,
      [
        Label(0, 850_500, "Begrüßung", url: "http://example.org/"),
        Label(850_500, 850_500, "Two", image: "i"),
      ]),
    Case(
      "chapters with pictures, links and places", .chapters,
      """
      {"chapters":[{"startTime":0,"title":"Intro","img":"i","url":"u",
        "location":{"name":"Austin","geo":"geo:30,97","country":"US"}},{"startTime":30.5,"endTime":60,"title":"Ad","toc":false}]}
      """,
      [
        Label(0, 30_500, "Intro", image: "i", url: "u", place: "Austin"),
        Label(30_500, 60_000, "Ad", isHidden: true),
      ]),
    Case(
      "details in the service's own JSON", .json,
      """
      {"labels":[{"start":0,"end":30.5,"text":"Intro","image":"i","url":"u","location":{"name":"Austin","geo":"geo:30,97"},
        "hidden":false,"min_hz":null},{"start":31,"end":32,"text":"","hidden":true,"min_hz":0,"max_hz":4200.5}]}
      """,
      [
        Label(0, 30_500, "Intro", image: "i", url: "u", place: "Austin"),
        Label(31_000, 32_000, "", isHidden: true, minHz: 0, maxHz: 4200.5),
      ]),
    Case(
      "an offset moves lines before the start", .lrc, "[offset:14000]\n[00:13.60]1\n[00:14.00]2\n[00:20.00]3",
      [Label(0, 6000, "2"), Label(6000, 11_000, "3")]),
  ]

  @Test("is read as people and programs write it", arguments: vtt + srt + lrc + others + lenient + ofTools)
  func reading(_ example: Case) throws {
    #expect(try parse(example.text, example.format) == example.labels)
  }

  @Test("is recognized by its content", arguments: vtt + srt + lrc + others + lenient + ofTools)
  func identification(_ example: Case) throws {
    #expect(try parse(example.text) == example.labels)
  }

  @Test("reads the same with every line end and encoding", arguments: vtt + srt + lrc + others + lenient + ofTools)
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
    for name in ["en", "english"] {
      let whisper = try LabelFile(parsing: Array(#"{"language":"\#(name)","segments":[]}"#.utf8))
      #expect(whisper == LabelFile(language: "en"))
    }
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
