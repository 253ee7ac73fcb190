/// The ID of a track of labels.
package typealias LabelTrackID = Identifier<LabelTrack>

/// A track of labels of a recording, without the labels themselves.
package struct LabelTrack: Sendable, Equatable {
  /// What the labels are.
  package enum Kind: String, CaseIterable, Sendable {
    case labels, transcript, lyrics, chapters
  }

  /// Where the track came from.
  package enum Source: String, CaseIterable, Sendable {
    case upload
    /// Found in the recording's file.
    case embedded
    /// Made by hand in the viewer.
    case editor
  }

  /// The track's ID, which is unique among all recordings.
  package let id: LabelTrackID
  /// The tenant of the recording. Set when the row is inserted.
  package internal(set) var tenant = Tenant.none
  /// The recording to which it belongs.
  package let recording: RecordingID
  /// The name shown to people.
  package var name: String
  /// What the labels are.
  package var kind: Kind
  /// A language tag such as “en”, if it is known.
  package var language: String?
  /// Where the track came from.
  package var source: Source
  /// Number of labels.
  package var count = 0
  /// Number of words with times of their own.
  package var words = 0
  /// Bytes that the labels take in the catalog. Set when they are stored.
  package internal(set) var bytes: Int64 = 0
  /// The name of its series of chunks. Set when they are stored.
  package internal(set) var series = ""
  /// When the first label begins and the last one ends, in microseconds; nil if there are none.
  package var start, end: Int64?
  /// The number of the next label that gets an ID, counted from 1. IDs are numbers as text.
  package var nextLabel = 1
  /// Number of changes since the track was created.
  package var version: Int64 = 0
  /// When the track was created and last changed.
  package var createdAt, changedAt: Timestamp

  /// Creates an empty track with a new ID at the present `time` by the catalog's clock.
  package init(
    of recording: RecordingID, name: String, kind: Kind, language: String?, source: Source, at time: Timestamp
  ) {
    (id, self.recording) = (LabelTrackID(at: time), recording)
    (self.name, self.kind, self.language, self.source) = (name, kind, language, source)
    (createdAt, changedAt) = (time, time)
  }

  init(
    id: LabelTrackID, recording: RecordingID, name: String, kind: Kind, language: String?, source: Source,
    createdAt: Timestamp, changedAt: Timestamp
  ) {
    (self.id, self.recording, self.name, self.kind, self.language) = (id, recording, name, kind, language)
    (self.source, self.createdAt, self.changedAt) = (source, createdAt, changedAt)
  }
}

/// Some hundred labels that follow each other, so that a window is read without reading the whole track.
package struct LabelChunk: Sendable, Equatable {
  /// When the first label begins, in microseconds.
  package var start: Int64
  /// When the last of them ends, in microseconds.
  package var end: Int64
  /// The text of each label as it is searched: folded, one per line.
  let folded: String
  /// The labels in the caller's form.
  package var labels: [UInt8]

  /// Creates a chunk. Folds the texts of its labels, except those whose `lines` are known from a stored chunk. Folding
  /// takes time: do it before a transaction.
  package init(start: Int64, end: Int64, texts: [String], lines: [Substring?] = [], labels: [UInt8]) {
    (self.start, self.end, self.labels) = (start, end, labels)
    folded =
      lines.contains { $0 != nil }
      ? zip(texts, lines).map { $1.map(String.init) ?? NameSearch.foldLines([$0]) }.joined(separator: "\n")
      : NameSearch.foldLines(texts)
  }

  /// About how many bytes of chunks a transaction writes, so that others don't wait for long.
  package static let bytesAtOnce = 900_000

  /// Bytes that the chunk takes in the catalog.
  package var bytes: Int { labels.count + folded.utf8.count }
}

/// What happens to a track's chunks.
package enum ChangedChunks: Sendable {
  case none
  /// They are replaced by these.
  case all([LabelChunk])
  /// The chunks with these numbers are replaced, made, or removed. `before`: how many bytes one had; 0 if it's new.
  case some([Int: (before: Int, after: LabelChunk?)])
}

/// A chunk as found in a window.
package struct FoundLabels: Sendable, Equatable {
  /// The chunk's number in its track.
  package var number = 0
  /// When the first label begins, in microseconds.
  package var start: Int64
  /// When the last of them ends, in microseconds.
  package var end: Int64
  /// The labels as they were inserted.
  package var labels: [UInt8]
  /// Which of the labels have the text that was searched for; nil if there was no search.
  package var matches: [Bool]?
}
