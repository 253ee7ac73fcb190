import Labels
import PresentRows
import Processing
import Terms
import Testing
import Workers

@testable import Jobs
@testable import Storage

/// The labels that a trimmed recording keeps.
@Suite struct LabelCutTests {
  private static func time(_ seconds: Double) -> MediaTime { MediaTime(seconds: seconds) ?? MediaTime(clamping: 0) }

  /// A chunk with a label of a second for each of `starts`, with two words each.
  private static func chunk(_ starts: Range<Int>, text: String = "ab") -> [UInt8] {
    LabelPieces.bytes(
      starts.map { start in
        let (first, last) = (time(Double(start)), time(Double(start) + 1))
        let words = [TimedWord(start: first, end: last, text: "a"), TimedWord(start: first, end: last, text: "b")]
        return Label(start: first, end: last, text: text, words: words)
      }[...])
  }

  private let output = RecordingID()

  private func cut(_ room: LabelCut.Room = .init(), from start: Double = 0, to end: Double = 1000) -> LabelCut {
    let source = LabelTrack(of: RecordingID(), name: "Takes", kind: .transcript, language: "de", source: .editor)
    return LabelCut(of: source, for: output, from: Self.time(start), to: Self.time(end), room, at: .now)
  }

  @Test("the track says what its chunks have together")
  func summary() throws {
    var cut = cut(from: 2, to: 9)
    let isAdded = [0..<2, 2..<5, 5..<20].allSatisfy { cut.add(Self.chunk($0)) }
    #expect(isAdded && cut.fits && cut.chunks.count == 2)
    let labels = try cut.chunks.flatMap { try LabelPieces.labels($0.labels) }
    #expect(labels.map(\.start.microseconds) == (0..<7).map { $0 * 1_000_000 })
    var whole = cut.track
    _ = whole.chunks(of: labels)
    #expect(cut.track == whole && whole.count == 7 && whole.words == 14 && whole.end == 7_000_000)
    #expect(whole.recording == output && whole.name == "Takes" && whole.kind == .transcript && whole.language == "de")
  }

  @Test("the folded text of a label that is kept is the stored one: folding takes long")
  func folded() throws {
    var cut = cut(from: 3, to: 9)
    let isAdded = cut.add(Self.chunk(2..<5), ["x", "y", "z"])
    #expect(isAdded && cut.chunks.map(\.folded) == ["y\nz"])
  }

  @Test(
    "a track fits only if there is room for all its labels, words and bytes",
    arguments: [
      (LabelCut.Room(labels: 4, words: 8, bytes: 10_000), true), (.init(labels: 3, words: 8, bytes: 10_000), false),
      (.init(labels: 4, words: 7, bytes: 10_000), false), (.init(labels: 4, words: 8, bytes: 300), false),
    ])
  func room(_ room: LabelCut.Room, _ fits: Bool) {
    var cut = cut(room)
    let isAdded = [0..<2, 2..<4].allSatisfy { cut.add(Self.chunk($0)) }
    #expect(isAdded == fits && cut.fits == fits)
    if fits { #expect(cut.room.labels == 0 && cut.room.words == 0 && cut.room.bytes < 10_000) }
  }

  @Test("as much as one track may have fits always, and no more than 48 MiB are kept of all")
  func limits() {
    let room = LabelCut.Room()
    #expect(room.labels == LabelLimits.labels && room.words == LabelLimits.words)
    #expect(room.bytes >= LabelLimits.bytes && room.bytes <= 48 << 20)
    let warnings = [1, 2].map { Warning.ofLabels(leftOut: $0) }
    #expect(warnings.map { $0.map(\.code) } == [["labels_left_out"], ["labels_left_out"]])
    #expect(warnings[1][0].detail.hasPrefix("2 tracks of labels are left out"))
    #expect(Warning.ofLabels(leftOut: 0).isEmpty)
  }
}
