import Foundation
import Testing

@testable import Labels

/// What survives a round trip out and back in, for each format and feature. The table in docs/labels.md is written by
/// this test and checked against it:
///
///     STILLWAVE_TABLES=remake deploy/test --filter RoundTripTableTests
@Suite struct RoundTripTableTests {
  private static let document = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appending(path: "../../docs/labels.md").standardized.path
  private static let (begin, end) = ("<!-- table of round trips -->\n", "<!-- end of table -->")

  private static let features: [(name: String, labels: [Label])] = [
    ("starts and ends in milliseconds, gaps", [Label(1, 1999, "a"), Label(2500, 3_600_001, "b")]),
    ("times in microseconds", [Label(start: MediaTime(clamping: 1), end: MediaTime(clamping: 1_000_001), text: "a")]),
    ("marks at one point", [Label(1000, 1000, "a"), Label(2000, 2000, "b")]),
    ("labels that overlap", [Label(0, 5000, "a"), Label(1000, 2000, "b"), Label(1000, 4000, "c")]),
    ("labels without a text", [Label(1000, 2000, ""), Label(3000, 4000, "a")]),
    ("several lines", [Label(1000, 2000, "a\nb")]),
    ("empty lines in a text", [Label(1000, 2000, "a\n\nb")]),
    ("every script, emoji, right to left", [Label(1000, 2000, "日本語 שלום é 👩‍👩‍👧")]),
    ("text like a tag of HTML", [Label(1000, 2000, "<i>a</i>")]),
    ("text like an entity, an arrow", [Label(1000, 2000, "&amp; -->")]),
    ("text like a time of LRC", [Label(1000, 2000, "[00:01.00] <00:01.00>a")]),
    ("speakers", [Label(1000, 2000, "a", "Ann & Bo")]),
    ("times of words", [Label(0, 2000, "a b", words: [TimedWord(0, 1000, "a"), TimedWord(1000, 2000, "b")])]),
    ("times of syllables", [Label(0, 2000, "ab", words: [TimedWord(0, 1000, "a"), TimedWord(1000, 2000, "b")])]),
    ("pauses between words", [Label(0, 2000, "a b", words: [TimedWord(0, 500, "a"), TimedWord(1000, 1500, "b")])]),
    ("words that overlap", [Label(0, 2000, "a b", words: [TimedWord(0, 1500, "a"), TimedWord(1000, 2000, "b")])]),
    ("a text like the times of a cue", [Label(1000, 2000, "a\n00:01 --> 00:02")]),
    ("pictures, links and places", [Label(1000, 2000, "a", image: "i", url: "u", place: "Austin")]),
    ("that a chapter isn't listed", [Label(1000, 2000, "a", isHidden: true)]),
    ("frequencies", [Label(1000, 2000, "a", minHz: 100, maxHz: 4200.5), Label(3000, 4000, "b", maxHz: 9)]),
    ("words that aren't the whole text", [Label(0, 2000, "a b", words: [TimedWord(0, 1500, "a")])]),
  ]

  @Test("what comes back is what the table in docs/labels.md says")
  func table() throws {
    let formats = LabelFormat.writable
    var lines = [
      "| | " + formats.map { "`\($0.rawValue)`" }.joined(separator: " | ") + " |",
      "| --- |" + String(repeating: " --- |", count: formats.count),
    ]
    for (name, labels) in Self.features {
      let cells = try formats.map { format in
        let written = WrittenLabels(labels, as: format)
        let again = try LabelFile(parsing: written.bytes, as: format).labels
        #expect((again == labels) == written.leftOut.isEmpty, "\(name) in \(format)")
        return written.leftOut.isEmpty ? "yes" : written.leftOut.map { "`\($0.rawValue)`" }.joined(separator: ", ")
      }
      lines.append("| \(name) | " + cells.joined(separator: " | ") + " |")
    }
    try compare(lines.joined(separator: "\n") + "\n")
  }

  private func compare(_ table: String) throws {
    let text = try String(contentsOfFile: Self.document, encoding: .utf8)
    let first = try #require(text.range(of: Self.begin))
    let last = try #require(text.range(of: Self.end))
    if ProcessInfo.processInfo.environment["STILLWAVE_TABLES"] == "remake" {
      let remade = text.replacingCharacters(in: first.upperBound..<last.lowerBound, with: table)
      try remade.write(toFile: Self.document, atomically: true, encoding: .utf8)
    } else {
      #expect(text[first.upperBound..<last.lowerBound] == table, "docs/labels.md is out of date; see above")
    }
  }
}
