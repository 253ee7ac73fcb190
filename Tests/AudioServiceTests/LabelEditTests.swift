import Jobs
import Labels
import Processing
import Terms
import Testing

@testable import AudioService
@testable import Storage

/// Changes of single labels of a track, beside the plain way: one label after the other in one list.
@Suite struct LabelEditTests {
  private static func label(_ id: String? = nil, at seconds: Int, _ text: String = "a") -> Label {
    var label = Label(
      start: MediaTime(clamping: Int64(seconds) * 1_000_000), end: MediaTime(clamping: Int64(seconds + 1) * 1_000_000),
      text: text)
    label.id = id
    return label
  }

  /// A track as it is stored. The folded line of each label is its ID instead of its folded text, which shows whether
  /// a line was kept or made again.
  private struct Stored {
    var track = LabelTrack(of: RecordingID(), name: "Takes", kind: .labels, language: nil, source: .editor)
    var chunks: [FoundLabels] = []
    var lines: [Int: [Substring]] = [:]

    init(_ labels: [Label]) throws {
      for (number, chunk) in track.chunks(of: labels).enumerated() {
        chunks.append(FoundLabels(number: number, start: chunk.start, end: chunk.end, labels: chunk.labels))
        lines[number] = LabelPieces.ids(chunk.labels).map { Substring($0) }
      }
    }

    var labels: [Label] { get throws { try chunks.flatMap { try LabelPieces.labels($0.labels) } } }

    /// Makes the changes, and returns the labels with their folded lines.
    mutating func change(_ edit: LabelEdit) throws -> [(id: String, line: String)] {
      let lines = lines
      var all: [(number: Int, labels: [UInt8], folded: String)] = chunks.map {
        ($0.number, $0.labels, lines[$0.number, default: []].joined(separator: "\n"))
      }
      switch try track.apply(edit, to: chunks, lines: { lines[$0] ?? [] }) {
      case .none: break
      case .all(let made): all = made.enumerated().map { ($0.offset, $0.element.labels, $0.element.folded) }
      case .some(let changes):
        for (number, (before, after)) in changes {
          let old = all.first { $0.number == number }
          #expect(before == (old.map { $0.labels.count + $0.folded.utf8.count } ?? 0))
          all.removeAll { $0.number == number }
          if let after { all.append((number, after.labels, after.folded)) }
        }
      }
      all.sort { $0.number < $1.number }
      return all.flatMap { chunk in
        zip(
          LabelPieces.ids(chunk.labels),
          chunk.folded.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        ).map { (id: $0, line: $1) }
      }
    }
  }

  @Test("any changes have the result of making them one after the other, and only new texts are folded")
  func oneAfterTheOther() throws {
    var random = SystemRandomNumberGenerator()
    for round in 0..<60 {
      let labels = (0..<Int.random(in: 0...700, using: &random)).map { _ in Int.random(in: 0...300, using: &random) }
        .sorted().map { Self.label(at: $0) }
      var stored = try Stored(labels)
      var plain = try stored.labels
      var edit = LabelEdit()
      let chosen = plain.compactMap(\.id).shuffled(using: &random).prefix(20)
      edit.remove = Array(chosen.prefix(10))
      let moved = chosen.dropFirst(10).map { Self.label($0, at: Int.random(in: 0...300, using: &random), "B") }
      let new = (0..<Int.random(in: 0...(round % 9 == 0 ? 900 : 30), using: &random)).map { _ in
        Self.label(at: Int.random(in: 0...300, using: &random), "B")
      }
      edit.set = (moved + new).sorted { $0.start < $1.start }
      plain.removeAll { label in chosen.contains { $0 == label.id } }
      for label in edit.set {
        plain.insert(label, at: plain.firstIndex { $0.start > label.start } ?? plain.count)
      }
      var next = labels.count + 1
      let expected = plain.map(\.id)
      let found = try stored.change(edit)
      // New labels get the next numbers, by their starts.
      let given = edit.set.filter { $0.id == nil }.map { _ in
        defer { next += 1 }
        return "\(next)"
      }
      var unnamed = given[...]
      #expect(found.map(\.id) == expected.map { $0 ?? unnamed.removeFirst() })
      let changed = Set(moved.compactMap(\.id) + given)
      #expect(found.allSatisfy { $0.line == (changed.contains($0.id) ? "b" : $0.id) })
      #expect(stored.track.count == plain.count)
    }
  }

  @Test("a chunk has at most 256 labels and about 64 KiB, so that a change of one label writes little")
  func sizes() throws {
    let long = String(repeating: "é", count: 15_000)
    var track = LabelTrack(of: RecordingID(), name: "Takes", kind: .labels, language: nil, source: .editor)
    let chunks = track.chunks(of: (0..<600).map { Self.label(at: $0, $0 < 10 ? long : "a") })
    #expect(chunks.map { LabelPieces.ids($0.labels).count } == [2, 2, 2, 2, 85, 256, 251])
    #expect(track.count == 600)
  }

  @Test("a thousand long labels between two others are divided")
  func division() throws {
    var stored = try Stored([Self.label(at: 0), Self.label(at: 9)])
    var edit = LabelEdit()
    edit.set = (0..<1000).map { _ in Self.label(at: 5, String(repeating: "a", count: 1000)) }
    guard case .all(let chunks) = try stored.track.apply(edit, to: stored.chunks, lines: { _ in [] }) else {
      Issue.record("the chunk has become too large")
      return
    }
    #expect(chunks.count > 10 && chunks.allSatisfy { $0.labels.count < 1 << 17 })
    #expect(chunks.reduce(0) { $0 + LabelPieces.ids($1.labels).count } == 1002)
  }

  @Test("a change of more than a megabyte of labels replaces the track, so that it can be stored piece by piece")
  func muchAtOnce() throws {
    let long = String(repeating: "a", count: 30_000)
    for (removed, isWhole) in [(20, false), (40, true)] {
      var stored = try Stored((0..<80).map { Self.label(at: $0, long) })
      var edit = LabelEdit()
      // Every second label. A chunk has two of them.
      edit.remove = (0..<removed).map { "\(2 * $0 + 1)" }
      let changed = try stored.track.apply(edit, to: stored.chunks, lines: { stored.lines[$0] ?? [] })
      if case .all = changed { #expect(isWhole) } else { #expect(!isWhole) }
      #expect(stored.track.count == 80 - removed)
    }
  }
}
