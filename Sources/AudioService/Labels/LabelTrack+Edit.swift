import Jobs
import Labels
import Storage

extension LabelTrack {
  /// Makes changes of single labels, all or none, and returns what becomes of the track's `chunks`: those with labels
  /// that change or are near new ones. O(bytes of the track), to find the IDs.
  ///
  /// Throws `.invalidMember` if an ID is unknown or named twice, or if a track can't have that much.
  mutating func apply(_ edit: LabelEdit, to chunks: [FoundLabels]) throws -> ChangedChunks {
    var wanted: [String: String] = [:]
    for (member, ids) in [("remove", edit.remove), ("set", edit.set.compactMap(\.id))] {
      for id in ids where wanted.updateValue(member, forKey: id) != nil {
        throw RequestError.invalidMember(member, .distinctLabels(repeated: id))
      }
    }
    // The labels of the chunks that change, before and after.
    var before: [Int: [Label]] = [:]
    var after: [Int: [Label]] = [:]
    func open(_ chunk: FoundLabels) throws {
      guard before[chunk.number] == nil else { return }
      before[chunk.number] = try LabelPieces.labels(chunk.labels)
      after[chunk.number] = before[chunk.number]
    }
    var unknown = wanted
    for chunk in chunks {
      let ids = LabelPieces.ids(chunk.labels).filter { unknown.removeValue(forKey: $0) != nil }
      guard !ids.isEmpty else { continue }
      try open(chunk)
      after[chunk.number]?.removeAll { label in label.id.map { wanted[$0] != nil } ?? false }
    }
    if let (id, member) = unknown.min(by: { $0.key < $1.key }) {
      throw RequestError.invalidMember(member, .labelsOfTrack(unknown: id))
    }
    for label in edit.set {
      let place = chunks.last { $0.start <= label.start.microseconds } ?? chunks.first
      if let place { try open(place) }
      var labels = after[place?.number ?? 0] ?? []
      let index = labels.firstIndex { $0.start > label.start } ?? labels.count
      labels.insert(identified(label), at: index)
      after[place?.number ?? 0] = labels
    }
    return try change(chunks, from: before, to: after)
  }

  /// Notes what the labels are after chunks have changed.
  private mutating func change(
    _ chunks: [FoundLabels], from before: [Int: [Label]], to after: [Int: [Label]]
  ) throws -> ChangedChunks {
    let changes = Dictionary(
      uniqueKeysWithValues: after.map { number, labels in
        (number, (before: LabelChunk(before[number]), after: LabelChunk(labels)))
      })
    func sum(_ labels: [Int: [Label]], _ number: (Label) -> Int) -> Int {
      labels.values.joined().reduce(0) { $0 + number($1) }
    }
    count += sum(after) { _ in 1 } - sum(before) { _ in 1 }
    words += sum(after) { $0.words.count } - sum(before) { $0.words.count }
    let kept = chunks.filter { after[$0.number] == nil }
    let added = changes.values.reduce(0) { $0 + ($1.after?.labels.count ?? 0) - ($1.before?.labels.count ?? 0) }
    let whole = chunks.reduce(added) { $0 + $1.labels.count }
    // What is stored as JSON can also be sent as JSON.
    guard count <= LabelLimits.labels, words <= LabelLimits.words, added <= 0 || whole <= LabelLimits.bytes else {
      throw RequestError.invalidMember("set", .labelsWithinLimits)
    }
    let present = changes.values.compactMap(\.after)
    start = (kept.map(\.start) + present.map(\.start)).min()
    end = (kept.map(\.end) + present.map(\.end)).max()
    guard after.values.contains(where: { $0.count > LabelChunk.mostLabels }) else { return .some(changes) }
    let all = try chunks.flatMap { try after[$0.number] ?? LabelPieces.labels($0.labels) }
    return .all(self.chunks(of: chunks.isEmpty ? after[0] ?? [] : all))
  }
}

extension LabelChunk {
  /// nil without labels.
  fileprivate init?(_ labels: [Label]?) {
    guard let labels, !labels.isEmpty else { return nil }
    self.init(labels[...])
  }
}
