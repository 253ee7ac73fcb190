import PresentRows
import Testing

@testable import Storage

/// The rows that a store of media needs if it can't be searched by folder.
@Suite(.onEveryEngine) struct ObjectCatalogTests {
  private let clock = TestClock()
  private let catalog: Catalog
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(
      at: folder("catalog.sqlite"),
      holder: LeaseHolder(name: "node", terms: LeaseHolder.Terms(), now: { [clock] in clock.now() }))
  }

  /// Inserts a recording with a waveform, a working copy and a conversion.
  private func insert() throws -> Recording {
    var recording = sample()
    recording.createdAt = clock.now()
    (recording.audioKey, recording.bytes) = (ObjectKey(recording.id, "audio.mp3"), 9)
    recording.waveformKey = ObjectKey(recording.id, "waveform-1.pyramid")
    recording.workingKey = ObjectKey(recording.id, "working-1.wav")
    let key = ObjectKey(recording.id, "converted-1.opus")
    try catalog.announce(recording.objects + [key])
    try catalog.insert(recording)
    let digest = String(repeating: "0", count: 64)
    try catalog.keep(
      Conversion(recording: recording.id, format: "opus", key: key, bytes: 1, sha256: digest), limit: 99)
    return recording
  }

  private func names(_ keys: some Sequence<ObjectKey>) -> [String] {
    keys.map { $0.descriptionVersion == nil ? $0.name : "recording.json" }.sorted()
  }

  private let all = [
    "audio.mp3", "audio.mp3.map", "converted-1.opus", "recording.json", "waveform-1.pyramid", "working-1.wav",
    "working-1.wav.map",
  ]

  @Test("an announced object is due in a day, and only its recording has it")
  func announcing() throws {
    let (one, two) = (ObjectKey(RecordingID(), "audio.wav"), ObjectKey(RecordingID(), "audio.wav"))
    try catalog.announce([one, two, one])
    #expect(try catalog.announcedObjects(of: one.recording) == [one])
    #expect(try catalog.announcedObjects(of: RecordingID()) == [] && catalog.dueGarbage() == [])
    clock.advance(86_400)
    #expect(try Set(catalog.dueGarbage()) == [.object(one), .object(two)])
  }

  @Test("an object that is announced again while it is removed stays announced")
  func announcedAgain() throws {
    let key = ObjectKey(RecordingID(), "audio.wav")
    try catalog.announce([key])
    clock.advance(86_400)
    let due = try catalog.dueGarbage()
    try catalog.announce([key])
    try catalog.forget(due)
    #expect(try catalog.announcedObjects(of: key.recording) == [key])
    clock.advance(86_400)
    try catalog.forget(due)
    #expect(try catalog.announcedObjects(of: key.recording) == [])
  }

  @Test("a recording's rows name its objects, until it is deleted")
  func naming() throws {
    let recording = try insert()
    #expect(try names(catalog.namedObjects(of: recording.id)) == all)
    _ = try catalog.deleteRecording(recording.id)
    #expect(try catalog.namedObjects(of: recording.id) == [] && catalog.isDeleted(recording.id))
    // Nothing more is recorded for a store that can be searched.
    #expect(try names(catalog.announcedObjects(of: recording.id)) == all)
  }

  @Test("the recordings without a row are found among any number, and those with a damaged one aren't among them")
  func missing() throws {
    let (whole, damaged, deleted) = (try insert(), try insert(), try insert())
    _ = try catalog.deleteRecording(deleted.id)
    _ = try catalog.engine.write(.statementLocks) {
      try $0.run("UPDATE recordings SET waveform_state = 'odd' WHERE id = ?", [damaged.id.text])
    }
    let strangers = Set((0..<1200).map { _ in RecordingID() } + [deleted.id])
    #expect(try catalog.missing(among: strangers.union([whole.id, damaged.id])) == strangers)
    #expect(try catalog.missing(among: []) == [])
  }

  /// What a transaction of each kind that names an object says if it may be gone.
  private func refusals(of key: (String) -> ObjectKey, in recording: Recording, _ token: AttemptToken) throws
    -> [String]
  {
    var (other, refused) = (sample(), [String]())
    let digest = String(repeating: "0", count: 64)
    let conversion = Conversion(
      recording: recording.id, format: "mp3", key: key("converted-2.mp3"), bytes: 1, sha256: digest)
    let audio = ObjectKey(other.id, "audio.mp3")
    (other.audioKey, other.bytes) = (audio, 9)
    let (catalog, complete, waveform) = (catalog, other, key("waveform-2.pyramid"))
    for (name, change) in [
      ("insert", { try catalog.insert(complete) }),
      ("keep", { try catalog.keep(conversion, limit: 99) }),
      ("finish", { _ = try catalog.finish(token, with: "{}") { $0.waveformKey = waveform } }),
    ] as [(String, () throws -> Void)] {
      do { try change() } catch StorageError.objectMayBeGone { refused.append(name) }
    }
    return refused
  }

  @Test(
    "an object isn't named once it is due, or was taken by a collection, whatever the clock says then",
    arguments: [(0.0, false), (86_400, false), (86_400, true)])
  func lateNaming(age: Double, isTaken: Bool) throws {
    catalog.nameDeletedObjects()
    let recording = try insert()
    let job = Job(id: JobID(), kind: .waveform, recording: recording.id)
    try catalog.insert(job)
    let token = try #require(try catalog.claim(job.id).written?.token)
    let key = { (name: String) in ObjectKey(recording.id, name) }
    let keys = [key("converted-2.mp3"), key("waveform-2.pyramid")]
    try catalog.announce(keys)
    clock.advance(age)
    if isTaken {
      #expect(try Set(catalog.takeGarbage()).isSuperset(of: keys.map { .object($0) }))
      clock.advance(-age)
      // Another try of the same work doesn't bring it back.
      try catalog.announce(keys)
    }
    let refused = try refusals(of: key, in: recording, token)
    // The object of `insert` was never announced.
    #expect(refused == (age == 0 ? ["insert"] : ["insert", "keep", "finish"]))
    #expect(
      try catalog.recording(recording.id)?.waveformKey?.name == (age == 0 ? "waveform-2.pyramid" : "waveform-1.pyramid")
    )
  }

  @Test("what a row names is no garbage any more, even when a day has passed")
  func settled() throws {
    catalog.nameDeletedObjects()
    _ = try insert()
    clock.advance(86_401)
    #expect(
      try names(catalog.dueGarbage().compactMap { if case .object(let key) = $0 { key } else { nil } }) == [
        "recording.json"
      ])
  }

  @Test("a conversion's object is removed an hour after its row, because a late request may put it once more")
  func discarded() throws {
    catalog.nameDeletedObjects()
    let recording = try insert()
    let key = ObjectKey(recording.id, "converted-2.opus")
    let digest = String(repeating: "0", count: 64)
    try catalog.announce([key])
    try catalog.keep(
      Conversion(recording: recording.id, format: "opus", key: key, bytes: 1, sha256: digest), limit: 99)
    let old = ObjectKey(recording.id, "converted-1.opus")
    clock.advance(3599)
    #expect(try !catalog.takeGarbage().contains(.object(old)))
    #expect(try catalog.announcedObjects(of: recording.id).contains(old))
    clock.advance(2)
    #expect(try catalog.takeGarbage().contains(.object(old)))
  }

  @Test("the catalog says what the objects are whose content it knows")
  func contents() throws {
    let recording = try insert()
    let sha256 = String(repeating: "0", count: 64)
    let audio = ObjectKey(recording.id, "audio.mp3")
    let opus = ExpectedObject(key: ObjectKey(recording.id, "converted-1.opus"), bytes: 1, sha256: sha256)
    #expect(try catalog.content(of: audio) == nil)
    try catalog.update(recording.id) { $0.sha256 = sha256 }
    #expect(try catalog.content(of: audio) == ExpectedObject(key: audio, bytes: 9, sha256: sha256))
    #expect(try catalog.content(of: opus.key) == opus)
    for name in ["audio.wav", "working-1.wav", "converted-2.opus"] {
      #expect(try catalog.content(of: ObjectKey(recording.id, name)) == nil)
    }
    try catalog.update(recording.id) { $0.workingBytes = 7 }
    let working = ObjectKey(recording.id, "working-1.wav")
    #expect(try catalog.content(of: working) == ExpectedObject(key: working, bytes: 7, sha256: nil))
  }

  @Test("if the store needs it, whatever deletes a recording records its objects in the same transaction")
  func deleting() throws {
    catalog.nameDeletedObjects()
    let (first, second) = (try insert(), try insert())
    _ = try catalog.deleteRecording(first.id)
    #expect(try names(catalog.announcedObjects(of: first.id)) == all)
    #expect(try names(catalog.announcedObjects(of: second.id)) == ["recording.json"], "the rest is named")
    #expect(try catalog.deleteRecordings(createdBefore: clock.now() + 1, limit: 9).map(\.id) == [second.id])
    #expect(try names(catalog.announcedObjects(of: second.id)) == all)
    try catalog.forgetDeletion(of: first.id)
    #expect(try !catalog.isDeleted(first.id))
  }
}
