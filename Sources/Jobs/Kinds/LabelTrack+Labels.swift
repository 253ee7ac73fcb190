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

  /// Notes what the labels are, and returns them in chunks. Those without an ID of this track get one.
  package mutating func chunks(of labels: [Label]) -> [LabelChunk] {
    let labels = labels.map { identified($0) }
    count = labels.count
    words = labels.reduce(0) { $0 + $1.words.count }
    start = labels.first?.start.microseconds
    end = labels.lazy.map(\.end.microseconds).max()
    return LabelChunk.chunks(of: labels)
  }

  /// Whether a label of the track has or had this ID.
  package func hasGiven(_ id: String) -> Bool { Int(id).map { (1..<nextLabel).contains($0) && "\($0)" == id } ?? false }

  /// Returns a label with an ID of this track.
  package mutating func identified(_ label: Label) -> Label {
    guard label.id.map(hasGiven) != true else { return label }
    defer { nextLabel += 1 }
    var label = label
    label.id = "\(nextLabel)"
    return label
  }
}

extension LabelChunk {
  /// Labels per chunk. A window reads one or two chunks needlessly; the index has an entry for each.
  private static let size = 256
  /// As many as a chunk may have after changes of single labels.
  package static let mostLabels = 2 * size

  /// Divides labels, which are sorted by start.
  fileprivate static func chunks(of labels: [Label]) -> [LabelChunk] {
    stride(from: 0, to: labels.count, by: size).map { LabelChunk(labels[$0..<min($0 + size, labels.count)]) }
  }

  /// Creates a chunk of labels, which are sorted by start. There must be one at least.
  package init(_ labels: ArraySlice<Label>) {
    self.init(
      start: labels[labels.startIndex].start.microseconds, end: labels.lazy.map(\.end.microseconds).max() ?? 0,
      texts: labels.map(\.text), labels: LabelPieces.bytes(labels))
  }
}
