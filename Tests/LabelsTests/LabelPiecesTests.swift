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
