import Foundation
import Testing

@testable import Storage

@Suite struct NameSearchTests {
  @Test(
    "texts that differ in case or encoding are folded to the same, whatever else is in them",
    arguments: [
      ("Grüße.WAV", "gru\u{308}SSE.wav"), ("ς", "Σ"), ("\u{1E0B}\u{323}", "\u{1E0D}\u{307}"),
      ("\u{AC00}", "\u{1100}\u{1161}"), ("\u{AC00}\u{11A8}", "\u{AC01}"),
      ("a\0É", "A\u{FFFD}e\u{301}"), ("\u{344}", "\u{308}\u{301}"),
    ])
  func folding(_ text: String, _ other: String) {
    #expect(Array(NameSearch.fold(text).utf8) == Array(NameSearch.fold(other).utf8))
  }

  /// Runs of marks that a normalization sorts, composes, or makes of one character.
  private static let runs: [[Unicode.Scalar]] = [
    ["\u{316}", "\u{301}"], ["\u{301}", "\u{316}"], ["\u{344}", "\u{316}"], ["\u{F73}"], ["\u{F75}", "\u{F81}"],
    ["\u{316}", "\u{301}", "\u{327}", "\u{345}"],
  ]

  @Test("no more than 30 non-starters in a row are sorted", arguments: runs)
  func longRuns(_ run: [Unicode.Scalar]) {
    var text = String.UnicodeScalarView("a".unicodeScalars)
    for index in 0..<10_000 { text.append(run[index % run.count]) }
    let folded = NameSearch.fold(String(text))
    var (longest, current) = (0, 0)
    for scalar in folded.unicodeScalars {
      current = scalar.properties.canonicalCombiningClass == .notReordered ? 0 : current + 1
      longest = max(longest, current)
    }
    #expect(longest <= 30)
  }

  @Test("a folded text is in Normalization Form C, whatever its characters combine to")
  func normalization() {
    // Without U+0F73, which Swift doesn't sort with the marks before it when it compares texts.
    let scalars: [Unicode.Scalar] = [
      "a", "E", " ", "\n", "\u{301}", "\u{316}", "\u{327}", "\u{345}", "\u{344}", "\u{F71}", "\u{F72}", "\u{1100}",
      "\u{1161}", "\u{11A8}", "\u{AC00}", "\u{9C7}", "\u{9BE}", "\u{1D160}", "\u{1D157}", "\u{1D165}", "\u{3B1}",
      "\u{390}",
      "\u{1F1E6}", "\u{212B}", "\u{5D9}", "\u{5B4}", "\u{110A5}", "\u{110BA}", "\u{304B}", "\u{3099}", "\u{130}",
      "\u{DF}",
      "\u{34F}", "\u{1025}", "\u{102E}", "\u{11935}", "\u{11930}",
    ]
    var state: UInt64 = 1
    for _ in 0..<50 {
      var text = String.UnicodeScalarView()
      for index in 0..<1000 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        // Never more than 30 marks in a row, which would be divided.
        text.append(index % 20 == 0 ? "b" : scalars[Int(state >> 33) % scalars.count])
      }
      let folded = NameSearch.fold(String(text))
      // Swift compares texts by canonical equivalence.
      #expect(folded == String(text).uppercased().lowercased())
      #expect(folded.utf8.elementsEqual(NameSearch.fold(folded.decomposedStringWithCanonicalMapping).utf8))
    }
  }

  @Test("up to 30 of them are folded as ever")
  func shortRuns() {
    let marks = String(repeating: "\u{316}\u{301}", count: 15)
    #expect(NameSearch.fold("A" + marks) == "a" + marks)
    #expect(!NameSearch.fold("A" + marks).unicodeScalars.contains("\u{34F}"))
    #expect(NameSearch.fold("A" + marks + "\u{316}").unicodeScalars.contains("\u{34F}"))
  }

  @Test("a text is found in the lines that contain it")
  func lines() {
    for (pattern, text, found) in [
      ("aab", "aaab\nab\naaaab", [true, false, true]), ("a", "", [false]),
      ("abab", "abaabab\nababa\naba", [true, true, false]),
      ("é", "é\ne", [true, false]), ("aa", "a\na", [false, false]), ("ab", "ab\n", [true, false]),
    ] as [(String, String, [Bool])] {
      #expect(ByteSearch(Array(pattern.utf8)).lines(of: text) == found, "\(pattern)")
    }
  }
}
