import PresentRows
import Testing

@testable import Storage

@Suite(.onEveryEngine) struct UploadCatalogTests {
  let folder: TemporaryFolder
  let catalog: Catalog

  init() throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(at: folder("catalog.sqlite"))
  }

  private func upload(expiresAt: Int64 = 1000) throws -> Upload {
    let upload = Upload(length: 10, metadata: "filename YQ==", expiresAt: Timestamp(milliseconds: expiresAt))
    try catalog.insert(upload, limits: UploadLimits(total: 100, perClient: 100))
    return upload
  }

  @Test("an upload is read back with its current offset")
  func advancing() throws {
    var upload = try upload()
    #expect(try catalog.upload(upload.id) == upload)
    try catalog.advance(upload.id, to: 7, expiresAt: Timestamp(milliseconds: 2000))
    (upload.offset, upload.expiresAt) = (7, Timestamp(milliseconds: 2000))
    #expect(try catalog.upload(upload.id) == upload)
    #expect(try Catalog(at: folder("catalog.sqlite")).upload(upload.id) == upload)
  }

  @Test("after an upload was taken over, its former writer records nothing")
  func takingOver() throws {
    let upload = try upload()
    let later = Timestamp(milliseconds: 2000)
    try catalog.advance(upload.id, to: 3, expiresAt: later)
    #expect(try catalog.segments(of: upload.id) == [UploadSegment(upload: upload.id, start: 0, writer: 0)])
    #expect(throws: StorageError.changedMeanwhile) { try catalog.takeOver(upload.id, at: 4) }
    #expect(try catalog.takeOver(upload.id, at: 3).writer == 1)
    #expect(throws: StorageError.uploadTakenOver(upload.id)) {
      try catalog.advance(upload.id, to: 5, expiresAt: later, by: 0)
    }
    #expect(try catalog.upload(upload.id)?.offset == 3)
    // The second writer was stopped before any of its bytes counted.
    #expect(try catalog.takeOver(upload.id, at: 3).writer == 2)
    #expect(
      try catalog.segments(of: upload.id).map { [$0.start, Int64($0.writer)] } == [[0, 0], [3, 2]],
      "a segment without bytes is forgotten")
    try catalog.advance(upload.id, to: 9, expiresAt: later, by: 2)
    #expect(try catalog.takeOver(upload.id, at: 9).writer == 3)
    #expect(try catalog.segments(of: upload.id).map(\.start) == [0, 3, 9])
    try catalog.insert(sample(), jobs: [], finishing: upload.id, expiresAt: later)
    for offset in [9, 10] as [Int64] {
      #expect(throws: StorageError.noSuchUpload(upload.id)) { try catalog.takeOver(upload.id, at: offset) }
    }
    try catalog.deleteUpload(upload.id)
    #expect(throws: StorageError.noSuchUpload(upload.id)) { try catalog.takeOver(upload.id, at: 0) }
  }

  @Test("an upload that another node has just prolonged isn't deleted as expired")
  func prolonged() throws {
    let upload = try upload(expiresAt: 1000)
    try catalog.advance(upload.id, to: 1, expiresAt: Timestamp(milliseconds: 5000))
    #expect(try !catalog.deleteUpload(upload.id, ifExpiredBefore: Timestamp(milliseconds: 2000)))
    #expect(try catalog.upload(upload.id) != nil)
    #expect(try catalog.deleteUpload(upload.id, ifExpiredBefore: Timestamp(milliseconds: 5001)))
    #expect(try catalog.upload(upload.id) == nil)
  }

  @Test("an upload is refused only by its writer, and not once it is a recording")
  func refusing() throws {
    let upload = try upload()
    #expect(try catalog.takeOver(upload.id, at: 0).writer == 1)
    #expect(try !catalog.deleteUpload(upload.id, unfinishedBy: 0))
    try catalog.insert(sample(), jobs: [], finishing: upload.id, expiresAt: Timestamp(milliseconds: 5000))
    #expect(try !catalog.deleteUpload(upload.id, unfinishedBy: 1))
    #expect(try catalog.upload(upload.id)?.recording != nil)
    let other = try self.upload()
    #expect(try catalog.deleteUpload(other.id, unfinishedBy: 0))
  }

  @Test("an upload that has bytes or another writer isn't deleted as an empty one, nor one that is a recording")
  func notEmpty() throws {
    let (empty, taken, begun, made) = (try upload(), try upload(), try upload(), try upload())
    #expect(try catalog.takeOver(taken.id, at: 0).writer == 1)
    try catalog.advance(begun.id, to: 1, expiresAt: begun.expiresAt)
    try catalog.insert(sample(), jobs: [], finishing: made.id, expiresAt: Timestamp(milliseconds: 5000))
    for id in [taken.id, begun.id, made.id] {
      #expect(try !catalog.deleteUpload(id, unfinishedBy: 0, ifEmpty: true) && catalog.upload(id) != nil)
    }
    #expect(try catalog.deleteUpload(empty.id, unfinishedBy: 0, ifEmpty: true))
  }

  @Test("an upload becomes one recording, however often it is completed")
  func once() throws {
    let upload = try upload()
    let first = sample()
    let job = Job(kind: .waveform, recording: first.id)
    let later = Timestamp(milliseconds: 5000)
    try catalog.insert(first, jobs: [job], finishing: upload.id, expiresAt: later)
    #expect(throws: StorageError.noSuchUpload(upload.id)) {
      try catalog.insert(sample(), jobs: [], finishing: upload.id, expiresAt: later)
    }
    #expect(try catalog.recordings(limit: 9).map(\.id) == [first.id])
    #expect(try catalog.jobs(limit: 9).map(\.id) == [job.id])
    #expect(try catalog.upload(upload.id)?.recording == first.id)
    #expect(try catalog.upload(upload.id)?.expiresAt == later)
  }

  @Test("a deleted upload can't be completed or advanced")
  func gone() throws {
    let upload = try upload()
    #expect(try catalog.deleteUpload(upload.id))
    #expect(try !catalog.deleteUpload(upload.id))
    #expect(try catalog.upload(upload.id) == nil)
    #expect(throws: StorageError.noSuchUpload(upload.id)) {
      try catalog.advance(upload.id, to: 1, expiresAt: upload.expiresAt)
    }
    #expect(throws: StorageError.noSuchUpload(upload.id)) {
      try catalog.insert(sample(), jobs: [], finishing: upload.id, expiresAt: upload.expiresAt)
    }
    #expect(try catalog.recordings(limit: 9).isEmpty)
  }

  @Test("only unfinished uploads count toward the limit")
  func limit() throws {
    let first = try upload()
    _ = try upload()
    let third = Upload(length: 1, expiresAt: first.expiresAt)
    let limits = UploadLimits(total: 2, perClient: 9)
    #expect(throws: StorageError.tooManyUploads(limit: 2)) { try catalog.insert(third, limits: limits) }
    try catalog.insert(sample(), jobs: [], finishing: first.id, expiresAt: first.expiresAt)
    try catalog.insert(third, limits: limits)
    #expect(try catalog.unfinishedUploads().map(\.id).contains(third.id))
    #expect(try !catalog.unfinishedUploads().map(\.id).contains(first.id))
  }

  private func insert(_ client: String, offset: Int64 = 0) throws -> UploadID {
    let upload = Upload(length: 9, offset: offset, expiresAt: Timestamp(milliseconds: 1), client: client)
    try catalog.insert(upload, limits: UploadLimits(total: 100, perClient: 4))
    return upload.id
  }

  @Test("each client has its own limit on unfinished uploads")
  func clientLimit() throws {
    for _ in 0..<4 { _ = try insert("crowd") }
    #expect(throws: StorageError.tooManyUploadsOfClient(limit: 4)) { try insert("crowd") }
    let other = try insert("other")
    #expect(try catalog.upload(other)?.client == "other")
  }

  @Test("empty uploads give way to a client with fewer, the oldest of the busiest client first")
  func givingWay() throws {
    let crowd = [try insert("crowd"), try insert("crowd", offset: 1), try insert("crowd"), try insert("crowd")]
    let two = [try insert("two"), try insert("two")]
    _ = try insert("one")
    #expect(try catalog.emptyUploads(givingWayTo: "new").map(\.id) == [crowd[0], crowd[2], crowd[3], two[0], two[1]])
    #expect(try catalog.emptyUploads(givingWayTo: "one").map(\.id) == [crowd[0], crowd[2], crowd[3]])
    #expect(try catalog.emptyUploads(givingWayTo: "crowd").isEmpty)
  }

  @Test("uploads expire at their time")
  func expiry() throws {
    let (early, _) = (try upload(expiresAt: 1000), try upload(expiresAt: 2000))
    #expect(try catalog.uploads(expiredBefore: Timestamp(milliseconds: 1000)) == [])
    #expect(try catalog.uploads(expiredBefore: Timestamp(milliseconds: 1001)).map(\.id) == [early.id])
    #expect(try catalog.uploads(expiredBefore: Timestamp(milliseconds: 2001)).count == 2)
  }

  // MARK: Answers

  private func answer(_ key: String = "k", _ fingerprint: String = "f", at time: Int64 = 1000) -> StoredResponse {
    StoredResponse(
      scope: "POST /v1/recordings", key: key, fingerprint: fingerprint, status: 201, location: "/v1/recordings/x",
      body: "{\"name\":\"é\"}", createdAt: Timestamp(milliseconds: time))
  }

  @Test("an answer is stored with the change it reports, or not at all")
  func answers() throws {
    let recording = sample()
    try catalog.insert(recording, answer: answer())
    #expect(try catalog.of(.none).answer(scope: "POST /v1/recordings", key: "k") == answer())
    #expect(try catalog.of(.none).answer(scope: "POST /v1/other", key: "k") == nil)
    #expect(throws: StorageError.self) { try catalog.insert(recording, answer: answer("other")) }
    #expect(try catalog.of(.none).answer(scope: "POST /v1/recordings", key: "other") == nil)
  }

  @Test("a newer answer replaces an older one, and old ones are deleted")
  func forgetting() throws {
    try catalog.insert(sample(), answer: answer())
    try catalog.insert(sample(), answer: answer("k", "g", at: 3000))
    try catalog.insert(sample(), answer: answer("l"))
    #expect(try catalog.of(.none).answer(scope: "POST /v1/recordings", key: "k")?.fingerprint == "g")
    #expect(try catalog.removeAnswers(before: Timestamp(milliseconds: 3000)) == 1)
    #expect(try catalog.of(.none).answer(scope: "POST /v1/recordings", key: "l") == nil)
    #expect(try catalog.of(.none).answer(scope: "POST /v1/recordings", key: "k") != nil)
  }
}
