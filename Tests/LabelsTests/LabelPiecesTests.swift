import Testing

@testable import Labels

/// Runs of labels as they are stored.
@Suite struct LabelPiecesTests {
  private static let labels = [
    Label(0, 1000, "a \"{[,\\"), Label(1000, 2000, ""),
    Label(2000, 3000, "b, c", "S,", words: [TimedWord(2000, 2500, "b,"), TimedWord(2500, 3000, "c]")]),
  ]

  @Test("labels of a run are chosen by their places", arguments: 0..<8)
  func choosing(bits: Int) throws {
    let run = LabelPieces.bytes(Self.labels[...])
    let isChosen = (0..<3).map { bits & 1 << $0 != 0 }
    let chosen = try LabelPieces.bytes(run, where: isChosen)
    #expect(chosen == LabelPieces.bytes(zip(Self.labels, isChosen).filter(\.1).map(\.0)[...]))
  }

  @Test("labels of a run are chosen by their times without being parsed")
  func choosingByTime() throws {
    var labels = Self.labels + [Label(3000, 3000, ""), Label(3000, 1_000_000_000_000, "end\":1,")]
    labels[0].id = "7"
    labels.append(
      Label(
        start: try #require(MediaTime(microseconds: 1)), end: try #require(MediaTime(microseconds: 3_000_010)), text: ""
      ))
    let run = LabelPieces.bytes(labels[...])
    for (start, end): (Int64, Int64) in [
      (0, .max), (0, 1), (1, 2), (1_000_000, 2_000_000), (2_999_999, 3_000_001), (3_000_009, 4_000_000),
      (4_000_000, 5_000_000),
    ] {
      func isChosen(_ first: Int64, _ last: Int64) -> Bool { first < end && last > start }
      let chosen = labels.filter { isChosen($0.start.microseconds, $0.end.microseconds) }
      #expect(LabelPieces.bytes(run, whereTimes: isChosen) == LabelPieces.bytes(chosen[...]), "\(start) to \(end)")
    }
  }

  @Test(
    "a run that another program wrote isn't cut without being parsed",
    arguments: [
      "", "{}", "{\"end\":2,\"start\":1,\"text\":\"\"}", "{ \"start\":1,\"end\":2,\"text\":\"\"}",
      "{\"start\":1e3,\"end\":2,\"text\":\"\"}", "{\"start\":1.0000001,\"end\":2,\"text\":\"\"}",
      "{\"start\":-1,\"end\":2,\"text\":\"\"}", "{\"start\":99999999999999999999,\"end\":2,\"text\":\"\"}",
      "{\"start\":9999999999999999,\"end\":2,\"text\":\"\"}", "{\"id\":\"", "{\"id\":\"a\\\"b\",\"start\":1",
      "{\"start\":1,\"end\":2",
    ])
  func foreign(run: String) { #expect(LabelPieces.bytes(Array(run.utf8), whereTimes: { _, _ in true }) == nil) }

  @Test func aDamagedRunIsAnError() throws {
    let run = LabelPieces.bytes(Self.labels[...])
    for count in [0, 2, 4] {
      #expect(throws: LabelsError.self) { try LabelPieces.bytes(run, where: Array(repeating: true, count: count)) }
    }
    #expect(throws: LabelsError.self) {
      try LabelPieces.bytes(Array(run.dropLast(3)), where: [true, true, true])
    }
  }
}
