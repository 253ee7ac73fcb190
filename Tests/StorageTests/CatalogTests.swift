import CSQLite
import Dispatch
import Foundation
import PresentRows
import Randomness
import Synchronization
import Terms
import Testing

@testable import Storage

@Suite(.onEveryEngine) struct CatalogTests {
  let folder: TemporaryFolder
  let catalog: Catalog

  init() throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(at: folder("catalog.sqlite"))
  }

  @Test("a recording is read as it was inserted, with every field set or none")
  func recordingRoundTrip() throws {
    var full = sample("interview.wav", job: JobID())
    full.bytes = 317_520_044
    full.sha256 = String(repeating: "0f", count: 32)
    full.format.frames = .max
    full.waveformState = .ready
    full.waveformKey = ObjectKey(full.id, "waveform-2.dat")
    full.audioKey = ObjectKey(full.id, "audio.wav")
    full.warnings = [Warning(code: "truncated", detail: "12 \"bytes\" \u{1F622} short\n")]
    full.derivedFrom = Derivation(recording: RecordingID(), job: JobID(), operation: "denoise")
    for recording in [full, sample()] {
      try catalog.insert(recording)
      #expect(try catalog.recording(recording.id) == recording)
    }
    #expect(try catalog.recording(RecordingID()) == nil)
  }

  @Test("the count of a recording's changes grows with every write to its row, before the call returns")
  func changesOfOne() throws {
    let (one, other) = (sample(), sample())
    var counts: [UInt64] = [catalog.changeCount(of: one.id)]
    func expectChange(_ what: String) {
      #expect(catalog.changeCount(of: one.id) > counts[counts.count - 1], "\(what)")
      counts.append(catalog.changeCount(of: one.id))
    }
    try catalog.insert(one)
    expectChange("insert")
    try catalog.update(one.id) { $0.name = "renamed" }
    expectChange("update")
    _ = try catalog.deleteRecording(one.id)
    expectChange("deletion")
    // With the note of the first deletion still there.
    try catalog.insert(one)
    expectChange("second insert")
    _ = try catalog.deleteRecordings(createdBefore: Timestamp(milliseconds: .max / 2), limit: 9)
    expectChange("deletion by age")
    try catalog.insert(one)
    _ = try catalog.deleteRecording(one.id)
    expectChange("second deletion")
    for _ in 0..<20 { try catalog.update(other.id) { $0.name += "x" } }
    #expect(catalog.changeCount(of: one.id) == counts.last)
  }

  @Test(
    "any text can be a name",
    arguments: [
      "", "a'); DROP TABLE recordings; --", "\"x\"", "../../etc/passwd", "🎙️ 인터뷰 👩‍👩‍👧.wav", "تسجيل\u{200F}.mp3",
      "Cafe\u{301}", "?1 :name @x $y %_", String(repeating: "長", count: 100_000), "\u{FFFD}\r\n\t",
    ])
  func names(name: String) throws {
    let recording = sample(name)
    try catalog.insert(recording)
    let read = try catalog.recording(recording.id)?.name
    // Compares Unicode scalars, because "==" on strings ignores a changed normal form.
    #expect(read.map { Array($0.unicodeScalars) } == Array(name.unicodeScalars))
  }

  @Test("recordings are listed newest first, page by page, each once")
  func paging() throws {
    let all = (0..<7).map { sample("\($0)") }
    var random = TestRandom(for: 1)
    for recording in all.shuffled(using: &random) { try catalog.insert(recording) }
    var pages: [[String]] = []
    var cursor: RecordingID?
    repeat {
      let page = try catalog.recordings(limit: 3, before: cursor)
      cursor = page.last?.id
      pages.append(page.map(\.name))
    } while cursor != nil
    #expect(pages == [["6", "5", "4"], ["3", "2", "1"], ["0"], []])
    #expect(try catalog.recordings(limit: -1).isEmpty)
  }

  @Test(
    "a search finds part of a name, ignoring case and without wildcards",
    arguments: [
      ("inter", ["Interview.wav"]), ("VIEW", ["Interview.wav"]), ("", nil), ("100%", ["100%_sure.wav"]),
      ("%", ["100%_sure.wav"]), ("_", ["100%_sure.wav"]), ("0__s", []), ("ÄRGER", ["ärger.ogg"]),
      ("café", ["Cafe\u{301} del mar.flac"]), ("CAF\u{C9}", ["Cafe\u{301} del mar.flac"]), ("ПРИВ", ["Привет.mp3"]),
      ("ΟΔΌΣ", ["οδός.wav"]), ("οδόσ", ["οδός.wav"]), ("strasse", ["Straße.wav"]),
      ("🎙", ["🎙️ one.wav"]), ("' OR 1=1 --", []), ("nothing", []),
    ] as [(String, [String]?)])
  func search(query: String, expected: [String]?) throws {
    let names = [
      "Interview.wav", "100%_sure.wav", "ärger.ogg", "Cafe\u{301} del mar.flac", "Привет.mp3", "οδός.wav", "Straße.wav",
      "🎙️ one.wav",
    ]
    for name in names { try catalog.insert(sample(name)) }
    #expect(try catalog.recordings(limit: 100, nameContaining: query).map(\.name) == expected ?? names.reversed())
  }

  /// Names of few letters, so that trigrams repeat, with characters that have two forms.
  @Test("a search through the index finds what reading every name finds")
  func searchAgreesWithReading() throws {
    var random = TestRandom(for: 11)
    let letters = [
      "a", "b", "B", " ", "\"", "'", "%", "é", "e\u{301}", "e", "K", "\u{212A}", ";", "ß", "ж", "\u{301}", "가",
      "\u{FFFD}", "\u{FFFE}", "\u{FFFF}",
    ]
    func text(_ length: ClosedRange<Int>) -> String {
      (0..<Int.random(in: length, using: &random)).map { _ in letters.randomElement(using: &random)! }.joined()
    }
    func contains(_ name: String, _ query: String) -> Bool {
      let (letters, wanted) = (Array(NameSearch.fold(name).utf8), Array(NameSearch.fold(query).utf8))
      return letters.indices.contains { letters[$0...].starts(with: wanted) }
    }
    var all: [Recording] = []
    for _ in 0..<300 {
      all.append(sample(text(1...9)))
      try catalog.insert(all[all.count - 1])
    }
    for index in stride(from: 0, to: 300, by: 7) {
      let name = text(1...9)
      try catalog.update(all[index].id) { $0.name = name }
    }
    for index in stride(from: 5, to: 300, by: 11) { _ = try catalog.deleteRecording(all[index].id) }
    let left = try catalog.recordings(limit: 1000)
    for _ in 0..<200 {
      let query = text(1...5)
      let (before, limit) = (all.randomElement(using: &random)!.id, Int.random(in: 1...40, using: &random))
      let expected = left.filter { $0.id < before && contains($0.name, query) }.prefix(limit)
      let found = try catalog.recordings(limit: limit, before: before, nameContaining: query)
      #expect(found.map(\.id) == expected.map(\.id), "\(query.debugDescription)")
    }
  }

  @Test(
    "a search for one or two characters finds them anywhere in a name, whether many names contain them or few",
    arguments: [false, true])
  func shortSearch(isCommon: Bool) throws {
    let names = ["xq", "talk xq", "xq talk", "a会议 1", "x", "\u{10FFFF}x\u{10FFFF}\u{10FFFF}", "q"]
    for name in names { try catalog.insert(sample(name)) }
    if isCommon {
      // As if as many other names had each of these. PostgreSQL makes no difference.
      try catalog.write { db in
        guard db.dialect == .sqlite else { return }
        try db.run(
          """
          INSERT INTO recording_names (rowid, name)
          WITH RECURSIVE n (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n LIMIT ?)
          SELECT k, 'xq 会议' FROM n
          """, [NameSearch.rareLimit])
      }
    }
    let expected = [
      "x": [5, 4, 2, 1, 0], "xq": [2, 1, 0], "q": [6, 2, 1, 0], "lk": [2, 1], "k ": [1], "  ": [], "会": [3], "会议": [3],
      "议": [3], "議": [], "\u{10FFFF}": [5], "x\u{10FFFF}": [5],
    ]
    for (query, found) in expected {
      let found = found.map { names[$0] }
      #expect(try catalog.recordings(limit: 9, nameContaining: query).map(\.name) == found, "\(query)")
      #expect(try catalog.recordings(limit: 1, nameContaining: query).map(\.name) == Array(found.prefix(1)), "\(query)")
    }
  }

  @Test("a search looks up every third trigram and the last")
  func searchUsesTheIndex() throws {
    #expect(NameSearch.trigrams(of: "meeting") == "\"mee\" AND \"tin\" AND \"ing\"")
    #expect(NameSearch.trigrams(of: "\"hi\"") == "\"\"\"hi\" AND \"hi\"\"\"")
    #expect(NameSearch.trigrams(of: "прив") == "\"при\" AND \"рив\"")
    #expect(NameSearch.trigrams(of: "ab") == nil)
    #expect(NameSearch.fold("A\0bc") == "a\u{FFFD}bc", "FTS5 would take U+0000 for the end of the query")
  }

  @Test("a search continues from a cursor and reflects a changed name")
  func searchPaging() throws {
    let all = ["song 1", "talk", "song 2", "song 3"].map { sample($0) }
    for recording in all { try catalog.insert(recording) }
    #expect(
      try catalog.recordings(limit: 1, before: all[3].id, nameContaining: "SONG").map(\.name) == ["song 2"])
    try catalog.update(all[1].id) { $0.name = "Song 1½" }
    #expect(try catalog.recordings(limit: 9, before: all[2].id, nameContaining: "song").count == 2)
    #expect(try catalog.recordings(limit: 9, nameContaining: "talk").isEmpty)
  }

  @Test("a change is read back, and changing a missing recording returns nil")
  func update() throws {
    let recording = sample()
    try catalog.insert(recording)
    let changed = try catalog.update(recording.id) {
      $0.waveformState = .building
      $0.warnings.append(Warning(code: "a", detail: "b"))
    }
    #expect(changed?.waveformState == .building)
    #expect(try catalog.recording(recording.id) == changed)
    #expect(try catalog.update(RecordingID()) { $0.name = "" } == nil)
  }

  @Test("a recording is not inserted if its jobs can't be")
  func insertionIsAtomic() throws {
    let recording = sample()
    let job = Job(kind: .waveform, recording: recording.id)
    #expect(throws: StorageError.self) { try catalog.insert(recording, jobs: [job, job]) }
    #expect(try catalog.recording(recording.id) == nil)
    #expect(try catalog.job(job.id) == nil)
  }

  @Test("a change is announced as directly after many others as after the first")
  func announcements() throws {
    let depths = Mutex<[Int]>([])
    catalog.whenChanged { _ in depths.withLock { $0.append(Thread.callStackReturnAddresses.count) } }
    let recording = sample()
    try catalog.insert(recording)
    for _ in 0..<20 { try catalog.update(recording.id) { $0.name += "." } }
    let updates = depths.withLock { $0 }.dropFirst()
    #expect(updates.count == 20 && updates.first == updates.last)
  }

  @Test("the conversions that were requested longest ago give way, and no more of them than must")
  func fullConversions() throws {
    let recordings = (0..<6).map { _ in sample() }
    for recording in recordings { try catalog.insert(recording) }
    func conversion(_ number: Int, bytes: Int64 = 3, used: Int64) -> Conversion {
      Conversion(
        recording: recordings[number].id, format: "mp3", key: ObjectKey(recordings[number].id, "converted-\(used)"),
        bytes: bytes, sha256: String(repeating: "0", count: 64), usedAt: Timestamp(milliseconds: used))
    }
    func kept() throws -> [Int] {
      try recordings.indices.filter { try catalog.conversion(of: recordings[$0].id, to: "mp3") != nil }
    }
    for (number, used) in [5, 1, 4, 2, 3].enumerated() {
      try catalog.keep(conversion(number, used: Int64(used)), limit: 15)
    }
    #expect(try kept() == [0, 1, 2, 3, 4])
    // Ten bytes of others may stay: three of them.
    try catalog.keep(conversion(5, bytes: 5, used: 0), limit: 15)
    #expect(try kept() == [0, 2, 4, 5])
    // A newer one of the same recording takes the place of the older.
    try catalog.keep(conversion(5, bytes: 4, used: 6), limit: 13)
    #expect(try kept() == [0, 2, 4, 5])
    // One that is too large for the limit is kept alone.
    try catalog.keep(conversion(1, bytes: 99, used: 7), limit: 15)
    #expect(try kept() == [1])
  }

  @Test("a recording is inserted with its waveform and the job that has already built it")
  func finishedJob() throws {
    var recording = sample()
    let job = Job(kind: .waveform, recording: recording.id, createdAt: Timestamp(milliseconds: 5), client: "a")
    (recording.waveformJob, recording.waveformState) = (job.id, .ready)
    recording.waveformKey = ObjectKey(recording.id, "waveform-1.pyramid")
    let token = AttemptToken(job: job.id, attempt: 1, nonce: AttemptToken.newNonce())
    let track = LabelTrack(of: recording.id, name: "Lyrics", kind: .labels, language: nil, source: .embedded)
    let ended = try catalog.insert(recording, finished: job, by: token, with: "{}", adding: [(track, [])])
    #expect(try catalog.recording(recording.id) == recording && catalog.job(job.id) == ended)
    #expect(ended.hasWon(token) && ended.result == "{}" && ended.progress == 1 && ended.client == "a")
    #expect(ended.startedAt == job.createdAt && ended.finishedAt != nil && ended.node == catalog.holder.node)
    #expect(try catalog.attempts(of: job.id).map(\.ending) == [.succeeded])
    #expect(try catalog.read { try $0.first("SELECT count(*) FROM label_tracks") } == 1)
    #expect(throws: StorageError.self) {
      try catalog.insert(sample("b"), finished: job, by: token, with: "{}")
    }
    #expect(try catalog.recordings(limit: 9) == [recording])
  }

  @Test("the check writes")
  func check() throws {
    for _ in 0..<2 { try catalog.check() }
    #expect(try catalog.read { try $0.first("SELECT beats FROM heartbeat") } == 2)
  }

  @Test("what SQLite keeps of the catalog in memory can be freed, and is read again")
  func releasedMemory() throws {
    let data = try DataFolder(1)
    let catalog = try Catalog(path: data.store.catalogPath)
    let id = data.recordings[0].id
    try catalog.update(id) { $0.name = String(repeating: "n", count: 1_000_000) }
    #expect(try catalog.recording(id)?.name.count == 1_000_000)
    let before = sqlite3_memory_used()
    catalog.releaseMemory()
    #expect(sqlite3_memory_used() < before - 1_000_000)
    #expect(try catalog.recording(id)?.name.count == 1_000_000)
  }
}
