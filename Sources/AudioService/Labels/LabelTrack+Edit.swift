import Jobs
import Labels
import Storage

extension LabelTrack {
  /// Makes changes of single labels, all or none, and returns what becomes of the track's `chunks`: those with labels
  /// that change or are near new ones. O(bytes of the track), to find the IDs, and O(n log n) for n changes. `lines`
  /// returns the folded lines of the chunk with a number, so that only new texts are folded.
  ///
  /// Throws `.invalidMember` if an ID is unknown or named twice, or if a track can't have that much.
  mutating func apply(
    _ edit: LabelEdit, to chunks: [FoundLabels], lines: (Int) throws -> [Substring]
  ) throws -> ChangedChunks {
    var wanted: [String: String] = [:]
    for (member, ids) in [("remove", edit.remove), ("set", edit.set.compactMap(\.id))] {
      for id in ids where wanted.updateValue(member, forKey: id) != nil {
        throw RequestError.invalidMember(member, .distinctLabels(repeated: id))
      }
    }
    // The labels of the chunks that change, before and after.
    var (before, after) = ([Int: OldLabels](), [Int: [FoldedLabel]]())
    func open(_ chunk: FoundLabels) throws {
      guard before[chunk.number] == nil else { return }
      let lines = try lines(chunk.number)
      let labels = try FoldedLabel.labels(chunk.labels, lines)
      before[chunk.number] = OldLabels(
        bytes: lines.reduce(chunk.labels.count + max(0, lines.count - 1)) { $0 + $1.utf8.count }, labels)
      after[chunk.number] = labels
    }
    var unknown = wanted
    for chunk in chunks {
      let ids = LabelPieces.ids(chunk.labels).filter { unknown.removeValue(forKey: $0) != nil }
      guard !ids.isEmpty else { continue }
      try open(chunk)
      after[chunk.number]?.removeAll { folded in folded.label.id.map { wanted[$0] != nil } ?? false }
    }
    if let (id, member) = unknown.min(by: { $0.key < $1.key }) {
      throw RequestError.invalidMember(member, .labelsOfTrack(unknown: id))
    }
    // The new labels are sorted, as the chunks are: each goes to the last chunk that doesn't begin after it.
    var place = 0
    for label in edit.set {
      while place + 1 < chunks.count, chunks[place + 1].start <= label.start.microseconds { place += 1 }
      if !chunks.isEmpty { try open(chunks[place]) }
      after[chunks.isEmpty ? 0 : chunks[place].number, default: []].append(FoldedLabel(identified(label)))
    }
    // The order of labels that begin together stays.
    for number in after.keys { after[number]?.sort { $0.label.start < $1.label.start } }
    return try change(chunks, from: before, to: after, lines)
  }

  /// The labels of a chunk as they were, and how many bytes it takes in the catalog.
  private struct OldLabels {
    let bytes, count, words: Int

    init(bytes: Int, _ labels: [FoldedLabel]) {
      (self.bytes, count, words) = (bytes, labels.count, labels.reduce(0) { $0 + $1.label.words.count })
    }
  }

  /// Notes what the labels are after chunks have changed.
  private mutating func change(
    _ chunks: [FoundLabels], from before: [Int: OldLabels], to after: [Int: [FoldedLabel]],
    _ lines: (Int) throws -> [Substring]
  ) throws -> ChangedChunks {
    for labels in after.values {
      count += labels.count
      words += labels.reduce(0) { $0 + $1.label.words.count }
    }
    for old in before.values { (count, words) = (count - old.count, words - old.words) }
    // Before anything is folded, which takes longer.
    guard count <= LabelLimits.labels, words <= LabelLimits.words else {
      throw RequestError.invalidMember("set", .labelsWithinLimits)
    }
    let changes = after.mapValues { $0.isEmpty ? nil : LabelChunk($0[...]) }
    let kept = chunks.filter { after[$0.number] == nil }
    let former = chunks.reduce(0) { $0 + $1.labels.count }
    let whole = changes.values.reduce(kept.reduce(0) { $0 + $1.labels.count }) { $0 + ($1?.labels.count ?? 0) }
    // What is stored as JSON can also be sent as JSON.
    guard whole <= max(former, LabelLimits.bytes) else {
      throw RequestError.invalidMember("set", .labelsWithinLimits)
    }
    let present = changes.values.compactMap(\.self)
    start = (kept.map(\.start) + present.map(\.start)).min()
    end = (kept.map(\.end) + present.map(\.end)).max()
    let isLong = present.reduce(0) { $0 + $1.bytes } > LabelChunk.bytesAtOnce
    guard isLong || after.values.contains(where: LabelChunk.isTooLarge) else {
      return .some(
        Dictionary(
          uniqueKeysWithValues: changes.map { number, chunk in (number, (before[number]?.bytes ?? 0, chunk)) }))
    }
    let all = try chunks.flatMap { chunk in
      try after[chunk.number] ?? FoldedLabel.labels(chunk.labels, lines(chunk.number))
    }
    return .all(self.chunks(of: chunks.isEmpty ? after[0] ?? [] : all))
  }
}
