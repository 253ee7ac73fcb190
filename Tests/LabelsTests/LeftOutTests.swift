import Testing

@testable import Labels

/// Files with good and bad cues.
@Suite struct LeftOutTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let format: LabelFormat
    let text: String
    /// The texts that are kept.
    let kept: [String]
    /// Line, column and fault of each cue that is left out.
    let leftOut: [(line: Int, column: Int, fault: LabelsFault)]
    var testDescription: String { "\(format) \(leftOut.map(\.fault.code))" }
  }

  private static let long = String(repeating: "ä", count: 32_769)
  private static let fit = String(repeating: "ä", count: 32_768)

  @Test(
    "bad cues are left out and named, and the others are kept",
    arguments: [
      Case(
        format: .srt,
        text: "1\n00:00:02,000 --> 00:00:01,000\nA\n\n00:00:03,000 --> 00:00:04,000\nB\n\nC\nC\n\n"
          + "00:00:05,000 --> 00:00:06,000\n\(long)\n\n00:00:07,000 --> 00:00:08,000\nD",
        kept: ["B\n\nC\nC", "D"], leftOut: [(2, 18, .endBeforeStart), (11, 1, tooLong)]),
      Case(
        format: .srt, text: "X\nX\n\n1\n00:00:01,000 -> 00:00:02,000\nA\n\n2\n00:00:03,000 --> 00:00:04,000\nB",
        kept: ["B"], leftOut: [(1, 1, .missingTimes(.srt)), (5, 1, .missingTimes(.srt))]),
      Case(
        format: .vtt,
        text: "WEBVTT\n\n00:01.000 --> 00:02.000\nA\n\nx\ny\n00:03.000 --> 00:04.000\n<00:09.000>B\n\n"
          + "00:05.000 --> 00:06.000\n<v \(long)>C</v>\n\n00:07.000 --> 00:08.000\nD",
        kept: ["A", "D"], leftOut: [(7, 1, .missingTimes(.vtt)), (9, 2, .wordOutsideLabel), (11, 1, tooLong)]),
      Case(
        format: .lrc, text: "[ti:x]\n[00:01.00]A\nB\n[00:99.00]C\n[00:03.00]<00:05.00>a <00:04.00>b\n[00:06.00]\(long)",
        kept: ["A"],
        leftOut: [(3, 1, .missingTimes(.lrc)), (4, 2, .badTime), (5, 24, .wordsRunBackward), (6, 1, tooLong)]),
      Case(
        format: .audacity, text: "1\t2\tA\nB\n2\t1\tC\n-1\t2\tD\n3\t4\t\(long)\n5\t6\t\(fit)", kept: ["A", fit],
        leftOut: [
          (2, 1, .missingTimes(.audacity)), (3, 3, .endBeforeStart), (4, 1, .negativeTime), (5, 1, tooLong),
        ]),
      Case(
        format: .json,
        text: #"{"labels":[{"start":1,"end":2,"text":"A"},"# + "\n" + #"{"start":1,"text":"B"},"# + "\n"
          + #"{"start":"1","end":[{}],"text":"C"},{"start":4,"end":5,"text":"\#(long)"},"# + "\n"
          + #"{"start":4,"end":5,"text":"D","words":[{"start":4,"end":9,"text":"D"}]},7]}"#,
        kept: ["A"],
        leftOut: [
          (2, 1, .missingMember("end")), (3, 10, .wrongType(expected: "a number of seconds")), (3, 37, tooLong),
          (4, 40, .wordOutsideLabel), (4, 73, .wrongType(expected: "an object")),
        ]),
      Case(
        format: .whisper,
        text: #"{"segments":[{"start":2,"end":1},{"start":3,"end":4,"text":"A"}],"language":"en"}"#, kept: ["A"],
        leftOut: [(1, 31, .endBeforeStart)]),
      Case(
        format: .chapters, text: #"{"chapters":[{"title":"x"},{"startTime":3,"title":"A"}]}"#, kept: ["A"],
        leftOut: [(1, 14, .missingMember("startTime"))]),
    ])
  func leavingOut(_ example: Case) throws {
    let bytes = Array(example.text.utf8)
    let file = try LabelFile(parsing: bytes, as: example.format)
    #expect(file.labels.map(\.text) == example.kept)
    #expect(file.leftOut.count == example.leftOut.count)
    for (found, expected) in zip(file.leftOut.named, example.leftOut) {
      #expect(found.fault == expected.fault)
      #expect([found.position.line, found.position.column] == [expected.line, expected.column])
    }
    let first = try #require(example.leftOut.first)
    expect(first.fault, at: (first.line, first.column), in: example.text, as: example.format)
  }

  private static let tooLong = LabelsFault.textTooLong(limit: 65_536)

  @Test("a file of nothing but bad cues is refused, and so is one that is bad as a whole")
  func refused() {
    for (text, format, fault) in [
      ("00:00:02,000 --> 00:00:01,000\nA", .srt, .endBeforeStart),
      (
        #"{"labels":[{"start":1,"end":2,"text":"A"},{"start":1,"end":2,"txet":"B"}]}"#, .json,
        .unknownMember("txet", known: membersOfLabel)
      ),
      (#"{"labels":[{"start":1,"end":2,"text":"A"},{"start":2,"end":1,"text":"B"}"#, .json, .malformedJSON),
      ("[offset:x]\n[00:01.00]A", .lrc, .badTime),
    ] as [(String, LabelFormat, LabelsFault)] {
      do throws(LabelsError) {
        _ = try LabelFile(parsing: Array(text.utf8), as: format)
        Issue.record("\(text)")
      } catch {
        #expect(error.fault == fault)
      }
    }
  }

  @Test("of many bad cues, a hundred are named")
  func many() throws {
    let line = "2\t1\tx\n"
    let file = try LabelFile(parsing: Array((String(repeating: line, count: 100_000) + "1\t2\tA").utf8), as: .audacity)
    #expect(file.leftOut.count == 100_000 && file.labels.count == 1)
    #expect(file.leftOut.named.map(\.position.line) == Array(1...100))
  }

  @Test("a long text inside a sound file is cut at a character, with a fault")
  func embedded() throws {
    var found = EmbeddedLabels()
    let text = "a" + String(repeating: "\u{316}\u{301}", count: 20_000)
    found.addLyrics(
      Array(text.utf8), name: String(repeating: "\u{1F1E6}", count: 300), EmbeddedClock(duration: .ms(9000)))
    #expect(found.faults == [.tooLong(.lyrics)])
    #expect(found.tracks.map { $0.labels[0].text.utf8.count } == [65_535])
    #expect(found.tracks[0].name == String(repeating: "\u{1F1E6}", count: 50))
    var document = found
    #expect(try EmbeddedLabels(parsing: document.document()).tracks == found.tracks)
  }
}
