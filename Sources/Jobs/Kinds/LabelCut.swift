import Labels
import Storage
import Terms

/// The part of a track that a trimmed recording keeps, made chunk by chunk, so that the labels of only one chunk are
/// parsed at a time.
struct LabelCut {
  /// How much all tracks of a recording may have in all: as much as one track, and no more bytes than are stored at
  /// once without holding up others.
  struct Room {
    var labels = LabelLimits.labels
    var words = LabelLimits.words
    var bytes = 2 * LabelLimits.bytes
  }

  private(set) var track: LabelTrack
  private(set) var chunks: [LabelChunk] = []
  /// What is left for further tracks.
  private(set) var room: Room
  /// Whether there was room for everything so far.
  private(set) var fits = true
  private let start, end: MediaTime

  /// Begins a track for another recording, with everything but the labels as in `source`.
  init(
    of source: LabelTrack, for recording: RecordingID, from start: MediaTime, to end: MediaTime, _ room: Room,
    at time: Timestamp
  ) {
    track = LabelTrack(
      of: recording, name: source.name, kind: source.kind, language: source.language, source: source.source,
      at: time)
    (self.start, self.end, self.room) = (start, end, room)
  }

  /// Adds the labels of the source's next chunk. Returns false if there is no room for them.
  mutating func add(_ bytes: [UInt8], _ lines: [Substring] = []) -> Bool {
    // Only a damaged catalog has labels that can't be read. A label that is cut has the same text.
    let labels = ((try? FoldedLabel.labels(bytes, lines)) ?? []).compactMap { folded in
      folded.label.cut(from: start, to: end).map { FoldedLabel($0, line: folded.line) }
    }
    guard !labels.isEmpty else { return true }
    var part = track
    let added = part.chunks(of: labels)
    room.labels -= part.count
    room.words -= part.words
    room.bytes -= added.reduce(0) { $0 + $1.bytes }
    fits = room.labels >= 0 && room.words >= 0 && room.bytes >= 0
    guard fits else { return false }
    chunks += added
    track.count += part.count
    track.words += part.words
    track.nextLabel = part.nextLabel
    track.start = track.start ?? part.start
    track.end = [track.end, part.end].compactMap(\.self).max()
    return true
  }
}
