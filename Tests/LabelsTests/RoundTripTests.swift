import Randomness
import Testing

@testable import Labels

/// What a format can hold comes back the same, and what it can't hold is named.
@Suite struct RoundTripTests {
  /// Random labels, and the names of what some formats can't hold.
  private struct Track {
    var labels: [Label] = []
    private var random: TestRandom

    init(_ use: Int) {
      random = TestRandom(for: use)
      var start: Int64 = 0
      let overlaps = Bool.random(using: &random)
      let unit: Int64 = [1, 1000, 10_000].randomElement(using: &random) ?? 1
      for _ in 0..<Int.random(in: 0...12, using: &random) {
        let length = Int64.random(in: 0...4_000_000, using: &random) / unit * unit
        labels.append(label(start, length))
        start += Int64.random(in: 0...(overlaps ? 3_000_000 : 1_000_000), using: &random) / unit * unit
        if !overlaps { start += length }
      }
    }

    private mutating func label(_ start: Int64, _ length: Int64) -> Label {
      var label = Label(
        start: MediaTime(clamping: start), end: MediaTime(clamping: start + length), text: text(4),
        speaker: Int.random(in: 0...3, using: &random) == 0 ? text(1).replacing("\n", with: " ") : nil)
      if label.speaker == "" { label.speaker = nil }
      let pieces = label.text.split(whereSeparator: { $0 == " " || $0 == "\n" }).map(String.init)
      guard Bool.random(using: &random), !pieces.isEmpty else { return label }
      let times = (0..<2 * pieces.count).map { _ in start + Int64.random(in: 0...length, using: &random) }.sorted()
      for (index, piece) in pieces.enumerated() {
        label.words.append(
          TimedWord(
            start: MediaTime(clamping: times[2 * index]), end: MediaTime(clamping: times[2 * index + 1]), text: piece))
      }
      return label
    }

    /// Returns a text in its normal form.
    private mutating func text(_ length: Int) -> String {
      let parts = [
        "word", "Ünï", "日本語", "a<b", "&amp;", "<i>", "{\\an8}", "\"q\"", "\\", "-->", "[00:01.00]", "<00:01.00>", "12",
        "NOTE",
        "👩‍👩‍👧", "\u{A0}", "WEBVTT", "[x]", "é",
      ]
      var text = ""
      for _ in 0..<Int.random(in: 0...length, using: &random) {
        if !text.isEmpty { text += [" ", "\n", "  "].randomElement(using: &random) ?? " " }
        text += parts.randomElement(using: &random) ?? ""
      }
      return text
    }
  }

  @Test("labels come back the same if nothing is left out", arguments: LabelFormat.writable)
  func exact(format: LabelFormat) throws {
    var exact = 0
    for use in 0..<600 {
      let labels = Track(use).labels
      let file = WrittenLabels(labels, as: format)
      let again = try LabelFile(parsing: file.bytes, as: format).labels
      if file.leftOut.isEmpty {
        exact += 1
        #expect(again == labels, "seed \(TestSeed.value), use \(use): \(String(decoding: file.bytes, as: UTF8.self))")
      } else {
        #expect(again != labels, "seed \(TestSeed.value), use \(use): \(file.leftOut) is held after all")
      }
    }
    #expect(exact >= (format == .json ? 600 : 20))
  }

  @Test("a file that was written is read and written the same", arguments: LabelFormat.writable)
  func stable(format: LabelFormat) throws {
    for use in 0..<300 {
      let first = try LabelFile(parsing: WrittenLabels(Track(use).labels, as: format).bytes, as: format).labels
      let file = WrittenLabels(first, as: format)
      // Text that looks like markup may be text again behind a reader that removes the markup around it.
      guard !file.leftOut.contains(.markup) else { continue }
      #expect(try LabelFile(parsing: file.bytes, as: format).labels == first, "seed \(TestSeed.value), use \(use)")
    }
  }

  private static let whole = [
    Label(1000, 2000, "two\nlines", "Ann", words: [TimedWord(1000, 1400, "two"), TimedWord(1500, 2000, "lines")]),
    Label(1500, 3000, ""),
    Label(start: MediaTime(clamping: 4_000_001), end: .ms(5000), text: "<i>x</i> <00:01.00>"),
  ]

  @Test(
    "what a format can't hold is named",
    arguments: [
      (.json, []), (.vtt, [.precision]), (.srt, [.markup, .precision, .speakers, .words]),
      (.lrc, [.emptyLabels, .lineBreaks, .markup, .precision, .speakers]),
      (.audacity, [.lineBreaks, .speakers, .words]), (.chapters, [.speakers, .words]),
    ] as [(LabelFormat, [LeftOut])])
  func leftOut(format: LabelFormat, names: [LeftOut]) {
    #expect(WrittenLabels(Self.whole, as: format).leftOut == names)
  }

  @Test("a speaker whose name ends with dashes makes no arrow in WebVTT")
  func speakerWithDashes() throws {
    let (start, end) = (try #require(MediaTime(seconds: 1)), try #require(MediaTime(seconds: 2)))
    let label = Label(start: start, end: end, text: "01", speaker: "Ann --", words: [])
    let written = WrittenLabels([label], as: .vtt)
    #expect(try LabelFile(parsing: written.bytes, as: .vtt).labels == [label] && written.leftOut.isEmpty)
  }

  @Test func overlapsAreNamedByTheFormatsWithoutThem() {
    let overlapping = [Label(0, 3000, "a"), Label(1000, 2000, "b")]
    #expect(WrittenLabels(overlapping, as: .lrc).leftOut == [.ends])
    let together = [Label(0, 2000, "a", words: [TimedWord(0, 2000, "a")]), Label(0, 3000, "b")]
    #expect(WrittenLabels(together, as: .lrc).leftOut == [.ends])
    let words = [Label(0, 3000, "a b", words: [TimedWord(0, 2000, "a"), TimedWord(1000, 3000, "b")])]
    #expect(WrittenLabels(words, as: .vtt).leftOut == [.wordEnds])
    let others = [Label(0, 3000, "a b", words: [TimedWord(0, 2000, "c")])]
    #expect(WrittenLabels(others, as: .vtt).leftOut == [.words])
  }

  @Test func timesAreRoundedToMilliseconds() {
    let label = Label(start: MediaTime(clamping: 1_000_499), end: MediaTime(clamping: 1_999_500), text: "a")
    #expect(written([label], .vtt) == "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\na\n")
    #expect(written([label], .srt) == "1\n00:00:01,000 --> 00:00:02,000\na\n")
    #expect(written([label], .lrc) == "[00:01.000]a\n[00:02.000]\n")
  }

  @Test("files look as other programs expect them")
  func appearance() {
    let labels = [
      Label(1000, 2500, "Hi & you", "Ann", words: [TimedWord(1000, 1500, "Hi"), TimedWord(1500, 2500, "& you")]),
      Label(3_661_250, 3_662_000, "b"),
    ]
    #expect(
      written(labels, .vtt) == """
        WEBVTT

        00:00:01.000 --> 00:00:02.500
        <v Ann><00:00:01.000>Hi <00:00:01.500>&amp; you

        01:01:01.250 --> 01:01:02.000
        b

        """)
    #expect(
      written(labels, .srt) == """
        1
        00:00:01,000 --> 00:00:02,500
        Hi & you

        2
        01:01:01,250 --> 01:01:02,000
        b

        """)
    #expect(
      written(labels, .lrc) == """
        [00:01.00]<00:01.00>Hi <00:01.50>& you<00:02.50>
        [00:02.50]
        [61:01.25]b
        [61:02.00]

        """)
    #expect(written(labels, .audacity) == "1.000000\t2.500000\tHi & you\n3661.250000\t3662.000000\tb\n")
    #expect(
      written(labels, .chapters)
        == #"{"version":"1.2.0","chapters":[{"startTime":1,"endTime":2.5,"title":"Hi & you"},"#
        + #"{"startTime":3661.25,"endTime":3662,"title":"b"}]}"#)
    #expect(
      written([labels[1]], .json) == #"{"labels":[{"start":3661.25,"end":3662,"text":"b"}]}"#)
  }
}
