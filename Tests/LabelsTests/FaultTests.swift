import Testing

@testable import Labels

/// Bad files: what is wrong, and where.
@Suite struct FaultTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let format: LabelFormat?
    let text: String
    let line, column: Int
    let fault: LabelsFault
    var testDescription: String { "\(fault)" }

    init(_ format: LabelFormat?, _ text: String, _ line: Int, _ column: Int, _ fault: LabelsFault) {
      (self.format, self.text, self.line, self.column, self.fault) = (format, text, line, column, fault)
    }
  }

  private static let deepTags = String(repeating: "<b>", count: 10_000)
  private static let isNoTime = LabelsFault.wrongType(expected: "a number of seconds")
  private static let deepArrays = "{\"labels\":" + String(repeating: "[", count: 10_000)

  @Test(
    "the first fault is reported with its line and column",
    arguments: [
      Case(nil, "Lorem ipsum\n", 1, 1, .unknownFormat),
      Case(nil, "", 1, 1, .unknownFormat),
      Case(nil, "\n\n {\"x\":1}", 1, 1, .unknownFormat),
      Case(nil, "<SAMI>\n<BODY><SYNC Start=1><P>a", 1, 1, .unreadFormat("SAMI")),
      Case(nil, "{10}{50}a", 1, 1, .unreadFormat("MicroDVD")),
      Case(nil, "[10][50]a", 1, 1, .unreadFormat("MPL2")),
      Case(nil, "Scenarist_SCC V1.0\n\n00:00:01:00\t9420", 1, 1, .unreadFormat("SCC")),
      Case(nil, "{\"utterances\":[]}", 1, 1, .unreadFormat("the JSON of AssemblyAI")),
      Case(nil, "<?xml version='1.0'?>\n<Chapters/>", 2, 1, .unreadFormat("Matroska's chapters in XML")),
      Case(nil, "<!DOCTYPE tt [<!ENTITY a 'a'>]><tt/>", 1, 1, .xmlHasDocumentType),
      Case(.ttml, String(repeating: "<tt>", count: 100_000), 1, 257, .xmlTooDeep(limit: 64)),
      Case(.ttml, "<tt><body></tt></body>", 1, 11, .malformedXML),
      Case(.ttml, "<tt><body><p>a</p></body></tt>", 1, 11, .missingTimes(.ttml)),
      Case(.ttml, "<tt><body><p begin='2s' end='1s'>a</p></body></tt>", 1, 11, .endBeforeStart),
      Case(.ttml, "<tt><body><p begin='1x'>a</p></body></tt>", 1, 11, .badTime),
      Case(.podlove, "<chapters>\n<chapter title='a'/></chapters>", 2, 1, .missingMember("start")),
      Case(.tsv, "start\tend\ttext\n1\tx\ta", 2, 3, .badTime),
      Case(.csv, "2,1,a", 1, 3, .endBeforeStart),
      Case(.csv, "2,1", 1, 1, .missingTimes(.csv)),
      Case(.times, "00:01 a\nb", 2, 1, .missingTimes(.times)),
      Case(.times, "00:61 a", 1, 1, .badTime),
      Case(.ass, "[Events]\nDialogue: 0:00:02.00,0:00:01.00,,,a", 2, 22, .endBeforeStart),
      Case(.sbv, "0:00:02.000,0:00:01.000\na", 1, 13, .endBeforeStart),
      Case(.lrc, "[offset:2000]\n[00:00.50]a\n[00:01.00]b", 2, 1, .endsBeforeZero),
      Case(.audacity, "1\t2\ta\n\\\t9\t8", 2, 1, .bandUpsideDown),
      Case(
        .json, "{\"labels\":[{\"start\":1,\"end\":2,\"text\":\"\",\"min_hz\":9,\"max_hz\":8}]}", 1, 61, .bandUpsideDown),
      Case(.vtt, "00:01.000 --> 00:02.000\na", 1, 1, .missingHeader),
      Case(.vtt, "WEBVTT\n\nid\nno times\n", 4, 1, .missingTimes(.vtt)),
      Case(.vtt, "WEBVTT\n\n00:01.000 --> 00:60.000\n", 3, 15, .badTime),
      Case(.vtt, "WEBVTT\n\n00:01.000 --> 1:60:00.000\n", 3, 15, .badTime),
      Case(.vtt, "WEBVTT\n\n00:02.000 --> 00:01.000\na", 3, 15, .endBeforeStart),
      Case(.vtt, "WEBVTT\n\n-00:02.000 --> 00:01.000\na", 3, 1, .negativeTime),
      Case(.vtt, "WEBVTT\n\n00:01.000 --> 00:02.000\nä <00:00.500>b", 4, 4, .wordOutsideLabel),
      Case(.vtt, "WEBVTT\n\n00:01.000 --> 00:02.000\nä <00:02.500>b", 4, 4, .wordOutsideLabel),
      Case(.vtt, "WEBVTT\n\n00:01.000 --> 00:02.000\n<00:01.500>a <00:01.200>b", 4, 15, .wordsRunBackward),
      Case(.vtt, "WEBVTT\n\n00:01.000 --> 00:02.000\n\(deepTags)", 4, 193, .tagsTooDeep(limit: 64)),
      Case(.srt, "1\n00:00:01,000 --> 00:00:02,000\n\(deepTags)", 3, 193, .tagsTooDeep(limit: 64)),
      Case(.srt, "1\n00:00:01,000 -> 00:00:02,000\na\n", 2, 1, .missingTimes(.srt)),
      Case(.srt, "1\n00:00:01,000 --> \na\n", 2, 18, .badTime),
      Case(.srt, "a\r\n\r\n1\r\n00:00:01,000 --> 00:00:02,000\r\nb\r\n", 1, 1, .missingTimes(.srt)),
      Case(.srt, "1\n1:60:00.000 --> 1:60:01.000\na", 2, 1, .badTime),
      Case(.srt, "00:00:01,000 --> 99999999999:00:00,000", 1, 18, .timeTooLarge),
      Case(.lrc, "[00:12.00]a\nb\n", 2, 1, .missingTimes(.lrc)),
      Case(.lrc, ":name:value]", 1, 1, .missingTimes(.lrc)),
      Case(.lrc, "[00:72.00]a\n", 1, 2, .badTime),
      Case(.lrc, "[-00:02.00]a\n", 1, 2, .negativeTime),
      Case(.lrc, "[00:12.00]<00:13.00>a <00:12.50>b", 1, 24, .wordsRunBackward),
      Case(.lrc, "[offset:x]\n", 1, 9, .badTime),
      Case(.audacity, "1.0\t2.0\ta\nnonsense", 2, 1, .missingTimes(.audacity)),
      Case(.audacity, "nan\t2.0\ta", 1, 1, .badTime),
      Case(.audacity, "1.0\t0x2\ta", 1, 5, .badTime),
      Case(.audacity, "2.0\t1.0\ta", 1, 5, .endBeforeStart),
      Case(.audacity, "-2.0\t1.0\ta", 1, 1, .negativeTime),
      Case(.audacity, "1e300\t1e301\ta", 1, 1, .timeTooLarge),
      Case(.json, "{\"labels\":[\n{\"start\":NaN,\"end\":2,\"text\":\"\"}]}", 2, 10, isNoTime),
      Case(.json, "{\"labels\":[{\"start\":-1,\"end\":2,\"text\":\"\"}]}", 1, 21, .negativeTime),
      Case(.json, "{\"labels\":[{\"start\":3,\"end\":2,\"text\":\"\"}]}", 1, 29, .endBeforeStart),
      Case(.json, "{\"labels\":[{\"start\":\"3\",\"end\":2}]}", 1, 21, isNoTime),
      Case(.json, "{\"labels\":[{\"start\":1,\"end\":2}]}", 1, 12, .missingMember("text")),
      Case(.json, "{\"labels\":[{\"start\":1,\"start\":1}]}", 1, 32, .repeatedMember("start")),
      Case(
        .json, "{\"labels\":[{\"beginn\":1}]}", 1, 22,
        .unknownMember("beginn", known: membersOfLabel)),
      Case(.json, "{\"labels\":[]} x", 1, 15, .malformedJSON),
      Case(.json, "{\"labels\":[],}", 1, 14, .malformedJSON),
      Case(.json, "{}", 1, 1, .missingMember("labels")),
      Case(.json, "[]", 1, 1, .wrongType(expected: "an object")),
      Case(.json, deepArrays, 1, 74, .jsonTooDeep(limit: 64)),
      Case(nil, "{\"x\":" + deepArrays.dropFirst(10), 1, 69, .jsonTooDeep(limit: 64)),
      Case(
        .json,
        "{\"labels\":[{\"start\":1,\"end\":2,\"text\":\"\",\"words\":[{\"start\":0,\"end\":2,\"text\":\"a\"}]}]}", 1,
        50, .wordOutsideLabel),
      Case(
        .json,
        "{\"labels\":[{\"start\":1,\"end\":2,\"text\":\"\",\"words\":[{\"start\":1.5,\"end\":2,\"text\":\"a\"},"
          + "{\"start\":1,\"end\":2,\"text\":\"b\"}]}]}", 1, 83, .wordsRunBackward),
      Case(.whisper, "{\"segments\":[{\"start\":1}]}", 1, 14, .missingMember("end")),
      Case(.whisper, "{\"segments\":[{\"start\":1,\"end\":0.5}]}", 1, 31, .endBeforeStart),
      Case(.chapters, "{\"chapters\":[{\"title\":\"a\"}]}", 1, 14, .missingMember("startTime")),
      Case(.chapters, "{\"chapters\":{}}", 1, 13, .wrongType(expected: "an array")),
      Case(.vtt, "WEBVTT\n\nnan --> 00:02\na\n", 3, 1, .badTime),
      Case(.srt, "1\nnan --> 00:02\na\n", 2, 1, .badTime),
      Case(.srt, "1\n-00:01 --> 00:02\na\n", 2, 1, .negativeTime),
      Case(.srt, "1\n00:02 --> 00:01\na\n", 2, 11, .endBeforeStart),
      Case(.lrc, "[ti:x]\n[NaN]a\n", 2, 1, .missingTimes(.lrc)),
      Case(.whisper, "{\"segments\":[\n{\"start\":NaN,\"end\":2}]}", 2, 10, isNoTime),
      Case(.whisper, "{\"segments\":[\n{\"start\":-1,\"end\":2}]}", 2, 10, .negativeTime),
      Case(
        .whisper,
        "{\"segments\":[{\"start\":0,\"end\":9,\"words\":[{\"start\":5,\"end\":6,\"word\":\"a\"},\n"
          + "{\"start\":4,\"end\":6,\"word\":\"b\"}]}]}", 2, 1, .wordsRunBackward),
      Case(.whisper, "{\"segments\":[],\n\"x\":" + deepArrays.dropFirst(10), 2, 68, .jsonTooDeep(limit: 64)),
      Case(.chapters, "{\"chapters\":[\n{\"startTime\":NaN}]}", 2, 14, isNoTime),
      Case(.chapters, "{\"chapters\":[\n{\"startTime\":-1}]}", 2, 14, .negativeTime),
      Case(.chapters, "{\"chapters\":[\n{\"startTime\":2,\"endTime\":1}]}", 2, 26, .endBeforeStart),
      Case(.chapters, "{\"chapters\":[],\n\"x\":" + deepArrays.dropFirst(10), 2, 68, .jsonTooDeep(limit: 64)),
    ])
  func faults(_ example: Case) throws {
    expect(example.fault, at: (example.line, example.column), in: example.text, as: example.format)
  }

  @Test("a binary file is no file of labels", arguments: LabelFormat.readable)
  func binary(format: LabelFormat) { expect(.notText, at: (1, 1), in: "\u{0}1\n00:01 --> 00:02\na\n", as: format) }

  @Test func aTrackHasNoMoreLabelsAndWordsThanTheLimits() throws {
    let source = try SourceText(Array("a\nb".utf8))
    var labels = LabelCollector(source)
    for _ in 0..<LabelLimits.labels { try labels.append(Label(0, 0, ""), at: 0) }
    #expect(throws: source.error(.tooManyLabels(limit: 200_000), at: 2)) { try labels.append(Label(0, 0, ""), at: 2) }
    var words = LabelCollector(source)
    let label = Label(0, 0, "", words: Array(repeating: TimedWord(0, 0, "a"), count: LabelLimits.words))
    try words.append(label, at: 0)
    #expect(throws: source.error(.tooManyWords(limit: 2_000_000), at: 2)) {
      try words.append(Label(0, 0, "", words: [TimedWord(0, 0, "a")]), at: 2)
    }
  }

  /// With a search for the end of each, these would take many seconds.
  @Test(
    "very many tags that nothing closes are read at once",
    arguments: [
      (.vtt, "WEBVTT\n\n00:01.000 --> 00:02.000\n", "<b"), (.vtt, "WEBVTT\n\n00:01.000 --> 00:02.000\n", "<v a></v> "),
      (.srt, "00:01 --> 00:02\n", "<i"), (.srt, "00:01 --> 00:02\n", "{\\a"), (.lrc, "[00:01.00]", "<1"),
      (.ass, "[Events]\nDialogue: 0:00:01.00,0:00:02.00,,,", "{\\a"), (.sbv, "0:00:01.00,0:00:02.00\n", "[br"),
    ] as [(LabelFormat, String, String)])
  func unclosed(format: LabelFormat, head: String, tag: String) throws {
    let labels = try parse(head + String(repeating: tag, count: 20_000), format)
    #expect(labels.count == 1)
    _ = WrittenLabels(labels, as: .lrc)
  }

  @Test func repeatedLinesHaveNoMoreTextThanAFileMayHave() throws {
    let text = String(repeating: "a", count: 1 << 16)
    let times = String(repeating: "[00:01.00]", count: 257)
    #expect { try parse(times + text) } throws: {
      ($0 as? LabelsError)?.fault == .tooMuchText(limit: 16 << 20)
    }
  }

  @Test("no beginning of a file crashes the parsers", arguments: LabelFormat.readable)
  func cutShort(format: LabelFormat) {
    let examples: [LabelFormat: String] = [
      .json: #"{"labels":[{"start":1.5,"end":2e0,"text":"\u00e4\n","words":[{"start":1.5,"end":2,"text":"a"}]}]}"#,
      .vtt: "WEBVTT\n\nNOTE x\n\nid\n00:01.000 --> 00:02.000 a\n<v A &amp; B>x <00:01.500>&lt;b</v>\n",
      .srt: "1\n00:00:01,000 --> 00:00:02,000\n{\\an8}<i>a</i>\n",
      .lrc: "[ti:x]\n[offset:-5]\n[00:01.00][00:02:50]<00:01.00>a <00:01.50>b\n",
      .audacity: "1,5\t2.5\ta\n\\\t1\t2\n",
      .whisper:
        #"{"segments":[{"start":1,"end":2,"words":[{"word":"a"},{"word":"b","start":1,"end":2}]}],"language":"en"}"#,
      .chapters: #"{"chapters":[{"startTime":1,"endTime":null,"title":"a","toc":false,"location":{"name":"x"}}]}"#,
      .tsv: "start\tend\ttext\n0\t2500\ta\n", .csv: "0,2500,\"a \"\"b\"\"\"\n",
      .transcript: #"{"segments":[{"startTime":1,"endTime":2,"body":"a","speaker":"b"}]}"#,
      .podlove: "<psc:chapters><psc:chapter start='00:01' title='&#xFC;&amp;' href='x'/></psc:chapters>",
      .times: "• (00:01) - a\n[0:02:03]–0:02:04 b\n",
      .ttml:
        "<?xml?><!-- --><tt frameRate='25'><body begin='1s'><p dur='1s'>a<br/><span end='5f'>b</span></p></body></tt>",
      .ass:
        "[Script Info]\nTitle: x\n[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,0:00:02.00,{\\k5}a\\Nb\n",
      .sbv: "0:00:01.000,0:00:02.000\na[br]b\n",
    ]
    let bytes = Array((examples[format] ?? "").utf8)
    #expect(!bytes.isEmpty)
    for length in 0...bytes.count {
      _ = try? LabelFile(parsing: Array(bytes[..<length]), as: format)
      _ = try? LabelFile(parsing: Array(bytes[length...]), as: format)
      _ = try? LabelFile(parsing: Array(bytes[..<length]))
    }
  }
}

let membersOfLabel = [
  "start", "end", "text", "speaker", "words", "id", "image", "url", "location", "hidden", "min_hz", "max_hz",
]

/// Expects that a file is refused with this fault, told in a sentence that begins with the place.
func expect(
  _ fault: LabelsFault, at place: (line: Int, column: Int), in text: String, as format: LabelFormat?,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  do throws(LabelsError) {
    _ = try LabelFile(parsing: Array(text.utf8), as: format, isStrict: true)
    Issue.record("the file is accepted", sourceLocation: sourceLocation)
  } catch {
    #expect(error.fault == fault, sourceLocation: sourceLocation)
    #expect(
      [error.position.line, error.position.column] == [place.line, place.column], sourceLocation: sourceLocation)
    let start = "Line \(place.line), column \(place.column): "
    #expect(error.words.hasPrefix(start) && error.words.hasSuffix("."), sourceLocation: sourceLocation)
  }
}
