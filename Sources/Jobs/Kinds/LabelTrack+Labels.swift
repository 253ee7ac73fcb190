import Labels
import Storage

extension LabelTrack {
  /// Maximum number of tracks per recording.
  package static let limit = EmbeddedLabels.trackLimit

  /// Returns the name of a track that neither the client nor the file names.
  package static func name(of kind: Kind) -> String {
    switch kind {
    case .labels: "Labels"
    case .transcript: "Transcript"
    case .lyrics: "Lyrics"
    case .chapters: "Chapters"
    }
  }

  /// Notes what the labels are.
  package mutating func summarize(_ labels: [Label]) {
    count = labels.count
    words = labels.reduce(0) { $0 + $1.words.count }
    start = labels.first?.start.microseconds
    end = labels.lazy.map(\.end.microseconds).max()
  }
}

extension LabelChunk {
  /// Labels per chunk. A window reads one or two chunks needlessly; the index has an entry for each.
  private static let size = 256

  /// Divides labels, which are sorted by start.
  package static func chunks(of labels: [Label]) -> [LabelChunk] {
    stride(from: 0, to: labels.count, by: size).map { first in
      let part = labels[first..<min(first + size, labels.count)]
      return LabelChunk(
        start: labels[first].start.microseconds, end: part.lazy.map(\.end.microseconds).max() ?? 0,
        texts: part.map(\.text), labels: LabelPieces.bytes(part))
    }
  }
}
