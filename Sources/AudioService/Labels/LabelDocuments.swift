import Labels
import Storage
import Terms
import Workers

/// A track of labels as the API shows it.
struct LabelTrackDocument: Encodable, Sendable {
  var id, name, kind: String
  @Nullable var language: String?
  var count, words: Int
  @Nullable var start: Double?
  @Nullable var end: Double?
  var source: String
  var createdAt, changedAt: String
  /// Whether the track belongs to the recording from which this one was made.
  var inherited: Bool
  var warnings: [Warning]
  /// The cues of the file that are bad; nil if there are none.
  var leftOut: LeftOutDocument?

  /// `recording` is the one that was asked about.
  init(_ track: LabelTrack, of recording: Recording) {
    id = track.id.text
    name = track.name
    kind = track.kind.rawValue
    language = track.language
    (count, words) = (track.count, track.words)
    start = track.start.map { Double($0) / 1_000_000 }
    end = track.end.map { Double($0) / 1_000_000 }
    source = track.source.rawValue
    createdAt = track.createdAt.rfc3339
    changedAt = track.changedAt.rfc3339
    inherited = track.recording != recording.id
    warnings = Self.warnings(end: track.end.map { Double($0) / 1_000_000 }, recording)
  }

  private static func warnings(end: Double?, _ recording: Recording) -> [Warning] {
    // Formats of labels round to as much as 10 ms.
    guard let end, let duration = recording.format.duration, end > duration + 0.01 else { return [] }
    let (last, whole) = (Words.seconds(end), Words.seconds(duration))
    let detail = "Labels last until \(last) s, but the recording until \(whole) s."
    return [Warning(code: "labels_past_end", detail: detail)]
  }
}

/// The cues of a file that no labels were made of, of which the first hundred are named.
struct LeftOutDocument: Encodable, Sendable {
  struct Cue: Encodable, Sendable {
    var line, column: Int
    var reason: String
  }

  var count: Int
  var cues: [Cue]

  /// nil if there are none.
  init?(_ leftOut: LeftOutCues) {
    guard leftOut.count > 0 else { return nil }
    count = leftOut.count
    cues = leftOut.named.map { Cue(line: $0.position.line, column: $0.position.column, reason: $0.fault.words) }
  }
}

/// The tracks of a recording, oldest first.
struct LabelTrackList: Encodable, Sendable {
  var tracks: [LabelTrackDocument]
  /// Whether the tracks are those of the recording from which this one was made.
  var inherited: Bool
}

extension LabelTrack {
  /// A strong tag of the track and its labels, which changes with each change. Contains the time, because a restored
  /// backup counts changes from an earlier number.
  var etag: String { "\"\(String(changedAt.milliseconds, radix: 36))-\(version)\"" }
}

/// A part of a track: the labels that overlap a window and contain a text.
struct LabelWindow: Sendable {
  /// Microseconds. A label that ends where the window begins isn't in it, unless it is a point; one that begins where
  /// the window ends isn't either.
  var start: Int64 = 0
  var end: Int64 = .max
  var text: String?

  private func contains(_ label: Label) -> Bool { contains(label.start.microseconds, label.end.microseconds) }

  private func contains(_ first: Int64, _ last: Int64) -> Bool {
    first < end && (last > start || first == last && first >= start)
  }

  /// Whether every label of a chunk is in the window, whatever the text.
  private func containsAll(_ chunk: FoundLabels) -> Bool { start <= chunk.start && chunk.end < end }

  /// Returns the labels of the chunks that are in the window, as elements of JSON arrays.
  func pieces(_ chunks: [FoundLabels]) throws -> [[UInt8]] {
    try chunks.map { chunk in
      if containsAll(chunk) {
        return try chunk.matches.map { try LabelPieces.bytes(chunk.labels, where: $0) } ?? chunk.labels
      }
      if chunk.matches == nil, let cut = LabelPieces.bytes(chunk.labels, whereTimes: contains) { return cut }
      return LabelPieces.bytes(try labels(chunk)[...])
    }
  }

  /// Returns the labels of the chunks that are in the window.
  func labels(_ chunks: [FoundLabels]) throws -> [Label] { try chunks.flatMap(labels) }

  private func labels(_ chunk: FoundLabels) throws -> [Label] {
    let all = try LabelPieces.labels(chunk.labels)
    guard let matches = chunk.matches else { return all.filter(contains) }
    return zip(all, matches).lazy.filter { $1 && contains($0) }.map(\.0)
  }
}
