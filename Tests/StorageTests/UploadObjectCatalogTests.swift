import PresentRows
import Testing

@testable import Storage

/// What the catalog records about the objects of uploads in a store without folders.
@Suite(.onEveryEngine) struct UploadObjectCatalogTests {
  private let folder: TemporaryFolder
  private let clock = TestClock()
  private let catalog: Catalog

  init() throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(
      at: folder("catalog.sqlite"), holder: LeaseHolder(name: "one", terms: LeaseHolder.Terms(), now: clock.now))
    catalog.nameDeletedObjects()
  }

  private let never = Timestamp(milliseconds: 4_000_000_000_000)

  /// Begins an upload that has two objects, of which the first counts.
  private func upload() throws -> (id: UploadID, counted: UploadObject, late: UploadObject) {
    let upload = Upload(length: 10, expiresAt: never)
    try catalog.insert(upload, limits: UploadLimits(total: 9, perClient: 9))
    let counted = UploadObject(of: upload.id, start: 0, bytes: 4)
    let late = UploadObject(of: upload.id, start: 4, bytes: 3)
    try catalog.announce([counted, late])
    try catalog.advance(upload.id, to: 4, expiresAt: never, adding: [counted])
    return (upload.id, counted, late)
  }

  @Test("objects that an upload's row names are needed; others are due a day after they were announced")
  func naming() throws {
    let (id, counted, late) = try upload()
    #expect(try catalog.objects(of: id) == [counted])
    #expect(try catalog.unneededObjects(of: id).map(\.key) == [late.key])
    #expect(try catalog.dueUploadObjects() == [] && catalog.dueGarbage() == [])
    clock.advance(86_401)
    let due = try catalog.dueUploadObjects()
    #expect(due.map(\.key) == [late.key])
    #expect(try catalog.dueGarbage() == [], "they aren't a recording's")
    try catalog.forget(due)
    #expect(try catalog.dueUploadObjects() == [] && catalog.unneededObjects(of: id) == [])
    #expect(try catalog.objects(of: id) == [counted])
  }

  @Test("an object that is due isn't named as a part of its upload", arguments: [true, false])
  func lateNaming(isTaken: Bool) throws {
    let (id, counted, late) = try upload()
    clock.advance(86_401)
    if isTaken {
      #expect(try catalog.takeUploadObjects().map(\.key) == [late.key])
      clock.advance(-86_401)
    }
    #expect(throws: StorageError.objectMayBeGone(key: late.key)) {
      try catalog.advance(id, to: 7, expiresAt: never, adding: [late])
    }
    #expect(try catalog.objects(of: id) == [counted] && catalog.upload(id)?.offset == 4)
  }

  @Test("a former writer names nothing")
  func formerWriter() throws {
    let (id, counted, late) = try upload()
    #expect(try catalog.takeOver(id, at: 4).writer == 1)
    #expect(throws: StorageError.uploadTakenOver(id)) {
      try catalog.advance(id, to: 7, expiresAt: never, by: 0, adding: [late])
    }
    #expect(try catalog.objects(of: id) == [counted])
  }

  @Test("an object that takes the place of others makes them unneeded, however many they are")
  func replacing() throws {
    let upload = Upload(length: 500, expiresAt: never)
    try catalog.insert(upload, limits: UploadLimits(total: 9, perClient: 9))
    let short = (0..<250).map { UploadObject(of: upload.id, start: $0, bytes: 1) }
    try catalog.announce(short)
    try catalog.advance(upload.id, to: 250, expiresAt: never, adding: short)
    let long = UploadObject(of: upload.id, start: 1, bytes: 300)
    try catalog.announce([long])
    try catalog.advance(upload.id, to: 301, expiresAt: never, adding: [long])
    #expect(try catalog.objects(of: upload.id) == [short[0], long])
    let replaced = Set(short.dropFirst().map(\.key))
    #expect(try Set(catalog.unneededObjects(of: upload.id).map(\.key)) == replaced)
    #expect(try catalog.dueUploadObjects() == [], "a request may still be under way")
    clock.advance(86_401)
    #expect(try Set(catalog.dueUploadObjects().map(\.key)) == replaced)
  }

  @Test("whatever ends an upload makes its objects unneeded in the same transaction", arguments: [true, false])
  func ending(isFinished: Bool) throws {
    let (id, counted, late) = try upload()
    clock.advance(86_401)
    try catalog.forget(catalog.dueUploadObjects())
    if isFinished {
      try catalog.insert(sample(), jobs: [], finishing: id, expiresAt: never)
    } else {
      #expect(try !catalog.deleteUpload(id, ifExpiredBefore: clock.now()))
      #expect(try catalog.objects(of: id) == [counted], "it hasn't expired")
      try catalog.deleteUpload(id)
    }
    #expect(try catalog.objects(of: id) == [])
    #expect(try catalog.unneededObjects(of: id).map(\.key) == [counted.key])
    #expect(late.start == counted.end)
    #expect(try catalog.dueUploadObjects() == [], "a request may still be under way")
    clock.advance(86_401)
    #expect(try catalog.dueUploadObjects().map(\.key) == [counted.key])
  }

  @Test("a deletion is forgotten once nothing is left to remove")
  func deletions() throws {
    let (id, _, _) = try upload()
    try catalog.deleteUpload(id)
    let empty = Upload(length: 1, expiresAt: never)
    try catalog.insert(empty, limits: UploadLimits(total: 9, perClient: 9))
    try catalog.deleteUpload(empty.id)
    try catalog.forgetSettledDeletions()
    #expect(try catalog.removals() == [id.text])
    clock.advance(86_401)
    try catalog.forget(catalog.dueUploadObjects())
    try catalog.forgetSettledDeletions()
    #expect(try catalog.removals() == [])
  }
}
