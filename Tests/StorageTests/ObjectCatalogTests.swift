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
    try catalog.insert(recording)
    let key = ObjectKey(recording.id, "converted-1.opus")
    let digest = String(repeating: "0", count: 64)
    try catalog.keep(
      Conversion(recording: recording.id, format: "opus", key: key, bytes: 1, sha256: digest), limit: 99)
    return recording
  }

  private func names(_ keys: some Sequence<ObjectKey>) -> [String] { keys.map(\.name).sorted() }

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
    #expect(try catalog.announcedObjects(of: recording.id) == [])
  }

  @Test("if the store needs it, whatever deletes a recording records its objects in the same transaction")
  func deleting() throws {
    catalog.nameDeletedObjects()
    let (first, second) = (try insert(), try insert())
    _ = try catalog.deleteRecording(first.id)
    #expect(try names(catalog.announcedObjects(of: first.id)) == all)
    #expect(try catalog.announcedObjects(of: second.id) == [])
    #expect(try catalog.deleteRecordings(createdBefore: clock.now() + 1, limit: 9).map(\.id) == [second.id])
    #expect(try names(catalog.announcedObjects(of: second.id)) == all)
    try catalog.forgetDeletion(of: first.id)
    #expect(try !catalog.isDeleted(first.id))
  }
}
