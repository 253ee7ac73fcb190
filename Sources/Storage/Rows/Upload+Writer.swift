// Which process may write for an upload, as a state machine on the upload's value and its segments. Each transition is
// applied inside a transaction (Catalog+Uploads).
//
//   transition   condition                                      next state
//   ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
//   takeOver     unfinished, and its durable bytes end there    writer + 1, and a segment that begins there
//   advance      by its writer                                  the offset
//   finish       unfinished                                     its recording
//   refuse       unfinished, by its writer                      deleted
//
// Each writer appends to a file of its own. A segment says from where on a writer's file counts; it counts up to the
// next segment, or to the offset. So whatever a former writer still writes or records changes nothing that counts: it
// may append to its file, after the bytes that count, and its transitions are refused.
//
// A finish by a former writer is accepted: all bytes were durable when the offset reached the length, and a former
// writer has the same bytes as every later one. A refusal by a former writer isn't, because its files may have been
// removed after another writer's finish, so that its probe found nothing.
//
// Invariants, whatever is lost, late or repeated (UploadSimulationTests): an offset that was reported to a client never
// decreases; the bytes before it stay as they were acknowledged; an upload becomes one recording, with these bytes.

extension Upload {
  /// Makes the caller the writer of an unfinished upload whose durable bytes end at `offset`. Returns false if it has
  /// another offset, or is finished.
  package mutating func takeOver(at offset: Int64) -> Bool {
    guard recording == nil, self.offset == offset else { return false }
    writer += 1
    return true
  }

  /// Records that the bytes up to `offset` are durable. Returns false if `writer` isn't the writer any more.
  package mutating func advance(to offset: Int64, by writer: Int) -> Bool {
    guard self.writer == writer else { return false }
    self.offset = offset
    return true
  }

  /// Records the recording that the upload became. Returns false if it has become one already.
  package mutating func finish(as recording: RecordingID) -> Bool {
    guard self.recording == nil else { return false }
    self.recording = recording
    return true
  }

  /// Whether `writer` may delete the upload because its bytes are no recording.
  package func mayBeRefused(by writer: Int) -> Bool { recording == nil && self.writer == writer }
}

extension [UploadSegment] {
  /// Returns the segments with the number of bytes of each that count, if `offset` bytes of the upload do.
  package func counting(to offset: Int64) -> [(segment: UploadSegment, count: Int64)] {
    enumerated().map { index, segment in
      let end = index + 1 < count ? self[index + 1].start : offset
      return (segment, Swift.max(0, end - segment.start))
    }
  }
}
