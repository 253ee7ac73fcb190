import Testing

@testable import Labels

/// Each kind of bad file, in each format in which it can occur. LRC has no ends, and LRC and Audacity's labels have no
/// tags; only WebVTT, LRC, JSON and Whisper's output have words.
@Suite struct BadFileTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let format: LabelFormat
    let text: String
    let line, column: Int
    let fault: LabelsFault
    var testDescription: String { "\(name) in \(format)" }

    init(_ name: String, _ format: LabelFormat, _ text: String, _ line: Int, _ column: Int, _ fault: LabelsFault) {
      (self.name, self.format, self.text) = (name, format, text)
      (self.line, self.column, self.fault) = (line, column, fault)
    }
  }

  /// A file of one label, with its start and end as written.
  private static func file(_ format: LabelFormat, _ start: String, _ end: String, text: String = "a") -> String {
    switch format {
    case .json: #"{"labels":[\#n{"start":\#(start),"end":\#(end),"text":"\#(text)"}]}"#
    case .whisper: #"{"segments":[\#n{"start":\#(start),"end":\#(end),"text":"\#(text)"}]}"#
    case .chapters: #"{"chapters":[\#n{"startTime":\#(start),"endTime":\#(end),"title":"\#(text)"}]}"#
    case .vtt: "WEBVTT\n\n\(start) --> \(end)\n\(text)\n"
    case .srt: "1\n\(start) --> \(end)\n\(text)\n"
    case .lrc: "[ti:x]\n[\(start)]\(text)\n"
    case .audacity: "0\t1\tx\n\(start)\t\(end)\t\(text)\n"
    }
  }

  private static let clocks: Set<LabelFormat> = [.vtt, .srt, .lrc]
  private static func seconds(_ format: LabelFormat, _ number: Int) -> String {
    clocks.contains(format) ? "00:0\(number)" : "\(number)"
  }

  private static let binary = LabelFormat.readable.map { format in
    Case("a binary file", format, "\u{0}" + file(format, "1", "2"), 1, 1, .notText)
  }

  /// Where the times of `file` are.
  private static let places: [LabelFormat: (line: Int, start: Int, end: Int)] = [
    .json: (2, 10, 18), .whisper: (2, 10, 18), .chapters: (2, 14, 26), .vtt: (3, 1, 11), .srt: (2, 1, 11),
    .lrc: (2, 2, 0), .audacity: (2, 1, 3),
  ]

  private static let notNumbers = LabelFormat.readable.map { format in
    let place = places[format] ?? (0, 0, 0)
    switch format {
    case .json, .whisper, .chapters:
      return Case("NaN", format, file(format, "NaN", "2"), place.line, place.start, .malformedJSON)
    case .lrc: return Case("NaN", format, file(format, "NaN", ""), 2, 1, .missingTimes(.lrc))
    default: return Case("NaN", format, file(format, "nan", seconds(format, 2)), place.line, place.start, .badTime)
    }
  }

  private static let negative = LabelFormat.readable.map { format in
    let place = places[format] ?? (0, 0, 0)
    let text = file(format, "-" + seconds(format, 1), seconds(format, 2))
    return Case("a negative time", format, text, place.line, place.start, .negativeTime)
  }

  private static let backward = LabelFormat.readable.filter { $0 != .lrc }.map { format in
    let place = places[format] ?? (0, 0, 0)
    let text = file(format, seconds(format, 2), seconds(format, 1))
    return Case("an end before its start", format, text, place.line, place.end, .endBeforeStart)
  }

  private static let words = [
    Case(
      "words that run backward", .vtt, file(.vtt, "00:01", "00:09", text: "<00:05>a <00:04>b"), 4, 11,
      .wordsRunBackward),
    Case("words that run backward", .lrc, file(.lrc, "00:01", "", text: "<00:05>a <00:04>b"), 2, 18, .wordsRunBackward),
    Case(
      "words that run backward", .json,
      #"{"labels":[{"start":0,"end":9,"text":"a b","words":[{"start":5,"end":6,"text":"a"},"#
        + "\n" + #"{"start":4,"end":6,"text":"b"}]}]}"#, 2, 1, .wordsRunBackward),
    Case(
      "words that run backward", .whisper,
      #"{"segments":[{"start":0,"end":9,"words":[{"start":5,"end":6,"word":"a"},"#
        + "\n" + #"{"start":4,"end":6,"word":"b"}]}]}"#, 2, 1, .wordsRunBackward),
  ]

  private static let deep = [LabelFormat.vtt, .srt].map { format in
    let tags = String(repeating: "<i>", count: 10_000)
    let text = file(format, "00:01", "00:02", text: tags)
    return Case("tags nested 10,000 deep", format, text, format == .vtt ? 4 : 3, 193, .tagsTooDeep(limit: 64))
  }

  /// In the service's own JSON, the first member that it doesn't know is at fault.
  private static let deepJSON = [("segments", LabelFormat.whisper), ("chapters", .chapters)].map { (name, format) in
    let arrays = String(repeating: "[", count: 10_000)
    return Case(
      "arrays nested 10,000 deep", format, "{\"\(name)\":[],\n\"x\":" + arrays, 2, 68, .jsonTooDeep(limit: 64))
  }

  @Test(
    "is refused with its line and column",
    arguments: binary + notNumbers + negative + backward + words + deep + deepJSON)
  func faults(_ example: Case) throws {
    expect(example.fault, at: (example.line, example.column), in: example.text, as: example.format)
  }
}
