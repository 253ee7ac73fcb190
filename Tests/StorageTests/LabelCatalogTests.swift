import PresentRows
import Testing

@testable import Storage

@Suite(.onEveryEngine) struct LabelCatalogTests {
  let folder: TemporaryFolder
  let catalog: Catalog
  let recording = sample()

  init() throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(at: folder("catalog.sqlite"))
    try catalog.insert(recording)
  }

  private func track(_ chunks: [LabelChunk] = [], limit: Int = 64) throws -> LabelTrack {
    var track = LabelTrack(of: recording.id, name: "Lyrics", kind: .lyrics, language: "de", source: .upload)
    (track.count, track.words, track.start, track.end) = (4, 7, 0, 90)
    try catalog.insert(track, chunks, limit: limit)
    return try #require(try catalog.labelTrack(track.id))
  }

  /// Three chunks, the first of which has a label that lasts until the end.
  private static let chunks = [
    LabelChunk(start: 0, end: 90, texts: ["Grüße", "two\nlines"], labels: [1]),
    LabelChunk(start: 20, end: 40, texts: [""], labels: [2]),
    LabelChunk(start: 40, end: 60, texts: ["100%_"], labels: []),
  ]

  private func rowCount(_ table: String) throws -> Int {
    try catalog.read { try $0.first("SELECT count(*) FROM \(table)") ?? -1 }
  }

  @Test("a track is read back after a restart")
  func reading() throws {
    let track = try track(Self.chunks)
    let again = try Catalog(at: folder("catalog.sqlite"))
    #expect(try again.labelTrack(track.id) == track && again.labelTracks(of: recording.id) == [track])
    let found = try #require(try again.labels(of: track.id))
    #expect(found.track == track)
    #expect(found.chunks.map(\.labels) == [[1], [2], []] && found.chunks.map(\.matches) == [nil, nil, nil])
    #expect(try again.labels(of: LabelTrackID()) == nil && again.labelTracks(of: RecordingID()) == [])
  }

  @Test(
    "a window finds the chunks that overlap it",
    arguments: [(0, 1, [0]), (30, 40, [0, 1]), (40, 41, [0, 1, 2]), (91, 99, [])])
  func windows(start: Int64, end: Int64, chunks: [Int]) throws {
    let track = try track(Self.chunks)
    let found = try #require(try catalog.labels(of: track.id, from: start, to: end)).chunks
    #expect(found.map(\.start) == chunks.map { Self.chunks[$0].start })
  }

  @Test(
    "a search finds the labels with a text, ignoring case and how it is encoded",
    arguments: [
      ("GRÜSSE", [true, false]), ("gru\u{308}ße", [true, false]), ("two lines", [false, true]),
      ("o\nl", [false, true]),
      ("e", [true, true]), ("", nil), ("eßtwo", nil), ("two lines and more", nil),
    ] as [(String, [Bool]?)])
  func searching(text: String, matches: [Bool]?) throws {
    let track = try track(Self.chunks)
    let found = try #require(try catalog.labels(of: track.id, containing: text)).chunks
    #expect(found.first?.matches == matches)
    #expect(found.count == (text.isEmpty ? 3 : matches == nil ? 0 : 1))
  }

  @Test("percent signs and underscores are only text")
  func notAPattern() throws {
    let track = try track(Self.chunks)
    #expect(try catalog.labels(of: track.id, containing: "%_")?.chunks.map(\.start) == [40])
    #expect(try catalog.labels(of: track.id, containing: "1%")?.chunks == [])
  }

  @Test("replacing labels changes the track's version and removes the old ones")
  func replacing() throws {
    let track = try track(Self.chunks)
    let updated = try #require(
      try catalog.update(
        track.id, if: { $0.version == 0 }, .all([LabelChunk(start: 1, end: 2, texts: ["x"], labels: [9])])
      ) {
        $0.count = 1
      })
    #expect(updated.version == 1 && updated.count == 1 && updated.name == "Lyrics")
    #expect(try catalog.labels(of: track.id)?.chunks.map(\.labels) == [[9]])
    #expect(throws: StorageError.changedMeanwhile) {
      try catalog.update(track.id, if: { $0.version == 0 }, .all([])) { $0.count = 0 }
    }
    while try catalog.eraseChunks() {}
    #expect(try catalog.labelTrack(track.id) == updated && rowCount("label_chunks") == 1)
    #expect(try catalog.update(LabelTrackID(), if: { _ in true }) { _ in } == nil)
  }

  @Test("a deleted track and the tracks of a deleted recording leave nothing behind")
  func deleting() throws {
    let (first, second) = (try track(Self.chunks), try track(Self.chunks))
    #expect(throws: StorageError.changedMeanwhile) { try catalog.deleteLabelTrack(first.id) { _ in false } }
    #expect(try catalog.deleteLabelTrack(first.id) { _ in true })
    #expect(try !catalog.deleteLabelTrack(first.id) { _ in true })
    #expect(try catalog.labels(of: first.id) == nil && catalog.labelTracks(of: recording.id) == [second])
    #expect(try catalog.labels(after: -1, of: first.id) == nil)
    let next = try #require(try catalog.labels(after: 0, of: second.id))
    #expect(next.found.number == 1 && next.lines == [""])
    while try catalog.eraseChunks() {}
    #expect(try rowCount("label_chunks") == 3 && catalog.labels(of: second.id)?.chunks.count == 3)
    _ = try catalog.deleteRecording(recording.id)
    #expect(try rowCount("label_tracks") == 0)
    let old = sample()
    try catalog.insert(old)
    let third = LabelTrack(of: old.id, name: "a", kind: .labels, language: nil, source: .editor)
    try catalog.insert(third, Self.chunks, limit: 1)
    let deleted = try catalog.deleteRecordings(createdBefore: Timestamp(milliseconds: .max / 2), limit: 9)
    #expect(deleted == [Owned(old.id, of: .none)])
    try catalog.eraseTraces()
    #expect(try ["label_tracks", "label_chunks", "garbage"].map(rowCount) == [0, 0, 0])
  }

  @Test("a deletion only makes labels unreachable; later transactions delete about a megabyte each, after a crash too")
  func largeTracks() throws {
    let large = LabelChunk(start: 0, end: 1, texts: ["x"], labels: [UInt8](repeating: 1, count: 250_000))
    let small = LabelChunk(start: 0, end: 1, texts: ["x"], labels: [1])
    let tracks = [Array(repeating: large, count: 7), Array(repeating: small, count: 70), []]
    for chunks in tracks { _ = try track(chunks) }
    #expect(try catalog.storedByTenant()[.none]?.storedBytes ?? 0 > 7 * 250_000)
    _ = try catalog.deleteRecording(recording.id)
    #expect(try rowCount("label_chunks") == 77 && rowCount("garbage") == 3)
    #expect(try catalog.storedByTenant()[.none]?.storedBytes ?? 0 == 0)
    // A move copies none of them.
    #expect(try CatalogDigest(of: catalog).tables["label_chunks"]?.count == 0)
    let again = try Catalog(at: folder("catalog.sqlite"))
    var left: [Int] = []
    while try again.eraseChunks() { left.append(try rowCount("label_chunks")) }
    #expect(left == [74, 71, 70, 6, 0, 0])
    #expect(try rowCount("garbage") == 0)
  }

  /// 1.75 MB.
  private static let long = (0..<7).map {
    LabelChunk(start: $0, end: 7, texts: ["x"], labels: [UInt8](repeating: UInt8($0), count: 250_000))
  }

  @Test("a long track is stored before the transaction that names it, except its last megabyte")
  func series() throws {
    let track = try track(Self.long)
    #expect(try catalog.labels(of: track.id)?.chunks.map(\.start) == Array(0..<7) && track.bytes == 7 * 250_001)
    try catalog.naming([Self.long, Self.chunks]) { (series, db) throws in
      #expect(series.map(\.rest.startIndex) == [4, 0])
      #expect(try db.first("SELECT count(*) FROM label_chunks WHERE series = ?", [series[0].name]) == 4)
      #expect(try db.first("SELECT count(*) FROM garbage") == 1)
    }
    while try catalog.eraseChunks() {}
    #expect(try rowCount("label_chunks") == 7 && rowCount("garbage") == 0)
  }

  @Test("a long track that is refused leaves nothing behind, and the one that it was to replace stays as it was")
  func refusedSeries() throws {
    let track = try track(Self.chunks)
    #expect(throws: StorageError.tooManyLabelTracks(limit: 1)) { try self.track(Self.long, limit: 1) }
    #expect(throws: StorageError.changedMeanwhile) {
      try catalog.update(track.id, if: { _ in false }, .all(Self.long)) { $0.count = 7 }
    }
    #expect(try catalog.labels(of: track.id)?.chunks.count == 3 && rowCount("label_chunks") == 3 + 2 * 4)
    while try catalog.eraseChunks() {}
    #expect(try rowCount("label_chunks") == 3 && rowCount("garbage") == 0)
  }

  @Test("what a crash has left of a long track stays for an hour, in which it may be named, and is then deleted")
  func abandonedSeries() throws {
    func due(_ comparison: String) throws -> Int {
      let now = try catalog.read { try catalog.now($0).milliseconds }
      return try catalog.read { try $0.first("SELECT count(*) FROM garbage WHERE due \(comparison) ?", [now]) ?? -1 }
    }
    // Named by no row, and not given up either.
    try catalog.naming([Self.long]) { _, db in
      try db.run("UPDATE garbage SET object = 'labels/other'")
      try db.run("UPDATE label_chunks SET series = 'other'")
    }
    #expect(try due(">") == 1 && !catalog.eraseChunks() && rowCount("label_chunks") == 4)
    try catalog.write { try $0.run("UPDATE garbage SET due = due - 3600001") }
    while try catalog.eraseChunks() {}
    #expect(try rowCount("label_chunks") == 0 && rowCount("garbage") == 0)
  }

  @Test("tracks found in a file come with the job's result, once, and only as many as fit")
  func embedded() throws {
    _ = try track()
    func finish(_ count: Int) throws -> [LabelTrack] {
      let job = Job(kind: .waveform, recording: recording.id)
      try catalog.insert(job)
      let token = try #require(try catalog.claim(job.id).written?.token)
      let tracks = (0..<count).map { number in
        let name = "Chapters \(number)"
        return LabelTrack(of: recording.id, name: name, kind: .chapters, language: nil, source: .embedded)
      }
      let found = tracks.map { (track: $0, chunks: Self.chunks) }
      let ended = try catalog.finish(token, with: "{}", { $0.waveformState = .ready }, adding: found, limit: 3)
      #expect(ended.written?.state == .succeeded)
      #expect(try catalog.recording(recording.id)?.waveformState == .ready)
      return try catalog.labelTracks(of: recording.id)
    }
    let first = try finish(3)
    #expect(first.map(\.name) == ["Lyrics", "Chapters 0", "Chapters 1"] && first[1].source == .embedded)
    #expect(try catalog.labels(of: first[1].id)?.chunks.count == 3)
    #expect(try finish(1) == first)
    let late = Job(kind: .waveform, recording: recording.id)
    try catalog.insert(late)
    let token = try #require(try catalog.claim(late.id).written?.token)
    _ = try catalog.deleteRecording(recording.id)
    let gone = [(track: first[1], chunks: Self.chunks)]
    #expect(try catalog.finish(token, with: "{}", adding: gone).written == nil)
    while try catalog.eraseChunks() {}
    #expect(try rowCount("label_tracks") == 0 && rowCount("label_chunks") == 0)
  }

  @Test("a recording has no more tracks than the limit, and a deleted one has none")
  func limits() throws {
    for _ in 0..<2 { _ = try track(limit: 2) }
    #expect(throws: StorageError.tooManyLabelTracks(limit: 2)) { try track(limit: 2) }
    _ = try catalog.deleteRecording(recording.id)
    #expect(throws: StorageError.noSuchRecording(recording.id)) { try track() }
    #expect(try rowCount("label_tracks") == 0)
  }
}
