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
  package mutating func chunks(of labels: [Label]) -> [LabelChunk] { chunks(of: labels.map { FoldedLabel($0) }) }

  /// The same, of labels whose folded lines may be known.
  package mutating func chunks(of labels: [FoldedLabel]) -> [LabelChunk] {
    let labels = labels.map { FoldedLabel(identified($0.label), line: $0.line) }
    count = labels.count
    words = labels.reduce(0) { $0 + $1.label.words.count }
    start = labels.first?.label.start.microseconds
    end = labels.lazy.map(\.label.end.microseconds).max()
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

/// A label and its text as it is searched, if that is known: folding 16 MiB takes seconds.
package struct FoldedLabel: Sendable {
  /// The label.
  package var label: Label
  /// Its text, folded; nil if it isn't known.
  package var line: Substring?

  /// Pairs a label with its folded text.
  package init(_ label: Label, line: Substring? = nil) { (self.label, self.line) = (label, line) }

  /// Returns the labels of a stored chunk.
  package static func labels(_ chunk: [UInt8], _ lines: [Substring]) throws(LabelsError) -> [FoldedLabel] {
    let labels = try LabelPieces.labels(chunk)
    return labels.indices.map { FoldedLabel(labels[$0], line: labels.count == lines.count ? lines[$0] : nil) }
  }

  /// About how many bytes the label takes.
  fileprivate var weight: Int {
    label.words.reduce(64 + label.text.utf8.count) { $0 + 48 + $1.text.utf8.count }
  }
}

extension LabelChunk {
  /// Labels per chunk, and about how many bytes. A window reads one or two chunks needlessly, and a change of one label
  /// writes a whole one; the index has an entry for each.
  private static let (size, weight) = (256, 1 << 16)

  /// Whether changes of single labels have made a chunk so large that it must be divided.
  package static func isTooLarge(_ labels: [FoldedLabel]) -> Bool {
    labels.count > 2 * size || labels.count > 1 && labels.reduce(0) { $0 + $1.weight } > 4 * weight
  }

  /// Divides labels, which are sorted by start.
  fileprivate static func chunks(of labels: [FoldedLabel]) -> [LabelChunk] {
    var (chunks, start, weight) = ([LabelChunk](), 0, 0)
    for (index, label) in labels.enumerated() {
      if index - start == size || index > start && weight + label.weight > Self.weight {
        chunks.append(LabelChunk(labels[start..<index]))
        (start, weight) = (index, 0)
      }
      weight += label.weight
    }
    if start < labels.count { chunks.append(LabelChunk(labels[start...])) }
    return chunks
  }

  /// Creates a chunk of labels, which are sorted by start. There must be one at least.
  package init(_ labels: ArraySlice<FoldedLabel>) {
    self.init(
      start: labels[labels.startIndex].label.start.microseconds,
      end: labels.lazy.map(\.label.end.microseconds).max() ?? 0, texts: labels.map(\.label.text),
      lines: labels.map(\.line), labels: LabelPieces.bytes(labels.map(\.label)[...]))
  }
}
