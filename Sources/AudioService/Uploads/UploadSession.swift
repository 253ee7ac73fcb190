// What an upload's offset promises: the offset told is in the row, and the row says what the part file durably has.
//
//   bytes come      they go to the part file, and count (`offset`) unless a checksum has still to be compared
//   a checkpoint    fsync of the part, then the row's commit; every so many bytes and seconds, and before any answer
//                   that tells an offset
//   a crash         the part is cut back to the row's offset: what was told is there, what was not told comes again
//   a request ends  whichever way: what has come and counts is kept
//
// One request writes at a time. A newer one that names the present offset takes over: the older is most often dead
// without knowing, a phone that changed networks. One that names another offset disturbs nobody.

import Dispatch
import HTTP
import Processing
import Storage
import Synchronization

/// What there is to say about an upload. All of `offset` is durable.
struct UploadStatus: Sendable {
  let offset: Int64
  let length: Int64
  let metadata: String?
  let expiresAt: Timestamp
  let recording: RecordingID?

  /// Whether all bytes are here.
  var isComplete: Bool { offset == length }
}

// @unchecked Sendable: all that changes is touched on `queue` alone.

/// A resumable upload with a request in progress.
final class UploadSession: @unchecked Sendable {
  private enum State {
    /// Nobody has looked yet.
    case unopened
    /// Bytes may come; those up to `offset` count.
    case receiving(UploadPart, offset: Int64)
    /// It has become a recording.
    case finished
    /// It can't be used: it is gone, or broken until it is opened anew.
    case unusable(ServiceError)
  }

  let id: UploadID
  private let dependencies: Dependencies
  private let queue: DispatchQueue
  private var state = State.unopened
  /// As it stands in the catalogue.
  private var upload: Upload?
  private var writer: UploadWriter?
  private var finishing: Task<Void, any Error>?
  private var checkpointAt = ContinuousClock.now
  private var bytesSinceCheck: Int64 = 0
  private let spent = Atomic<Bool>(false)

  init(_ id: UploadID, _ dependencies: Dependencies) {
    (self.id, self.dependencies) = (id, dependencies)
    queue = DispatchQueue(label: "upload")
  }

  /// Whether the next who wants this upload must have another session.
  var isSpent: Bool { spent.load(ordering: .acquiring) }

  private func run<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result { try body() }) }
    }
  }

  // MARK: Opening

  private func open() throws -> Upload {
    dispatchPrecondition(condition: .onQueue(queue))
    if case .unopened = state {
      do { try load() } catch {
        become(.unusable(error as? ServiceError ?? .storage(error as? StorageError ?? .noSuchUpload(id))))
      }
    }
    if case .unusable(let error) = state { throw error }
    guard let upload else { throw ServiceError.noSuchUpload(id.text) }
    return upload
  }

  /// Of what the part has, only what the row promises counts: the rest may be anything after a crash.
  private func load() throws {
    guard var upload = try dependencies.catalog.upload(id) else {
      throw try UploadRefusal(of: id, in: dependencies.catalog)?.error ?? ServiceError.noSuchUpload(id.text)
    }
    defer { self.upload = upload }
    guard upload.recording == nil else { return become(.finished) }
    guard let part = try dependencies.store.openPart(of: id) else {
      try dependencies.catalog.deleteUpload(id)
      throw ServiceError.noSuchUpload(id.text)
    }
    if part.byteCount < upload.offset {
      // Something other than a crash took them; see LostParts.
      upload.offset = part.byteCount
      try dependencies.catalog.advance(id, to: upload.offset, expiresAt: upload.expiresAt)
    }
    try part.truncate(to: upload.offset)
    state = .receiving(part, offset: upload.offset)
  }

  private func openAlive() throws -> Upload {
    let upload = try open()
    guard upload.expiresAt > .now else { throw ServiceError.uploadExpired(id) }
    return upload
  }

  private func become(_ next: State) {
    state = next
    spent.store(true, ordering: .releasing)
  }

  // MARK: Telling

  /// How far it is. What it tells is durable.
  func status() async throws -> UploadStatus {
    try await run { [self] in
      _ = try openAlive()
      return try statusNow()
    }
  }

  private func statusNow() throws -> UploadStatus {
    try checkpoint()
    let upload = try open()
    return UploadStatus(
      offset: upload.offset, length: upload.length, metadata: upload.metadata, expiresAt: upload.expiresAt,
      recording: upload.recording)
  }

  /// Makes what counts durable, then says so in the row.
  private func checkpoint() throws {
    guard case .receiving(let part, let offset) = state, var upload, offset > upload.offset else { return }
    do { try part.sync() } catch {
      // What is on the disk now nobody knows: it is opened anew, at the row's offset.
      become(.unusable(.storage(error)))
      throw error
    }
    upload.offset = offset
    upload.expiresAt = dependencies.expiry(from: .now)
    try dependencies.catalog.advance(id, to: offset, expiresAt: upload.expiresAt)
    self.upload = upload
    checkpointAt = .now
  }

  // MARK: Receiving

  /// Makes the caller the one that writes, from `offset` on, in place of whoever did.
  func begin(at offset: Int64, checksum: UploadChecksum?) async throws -> UploadWriter {
    try await run { [self] in
      _ = try openAlive()
      let status = try statusNow()
      guard offset == status.offset, case .receiving = state else {
        throw ServiceError.wrongUploadOffset(given: offset, actual: status.offset)
      }
      try endWriter(.uploadTakenOver(id))
      let writer = UploadWriter(checksum)
      self.writer = writer
      return writer
    }
  }

  /// Takes the place of the one that writes; what it sent under a checksum doesn't count.
  private func endWriter(_ error: ServiceError) throws {
    guard let writer else { return }
    self.writer = nil
    writer.outcome.tell(.failure(error))
    try dropUncounted()
  }

  private func dropUncounted() throws {
    guard case .receiving(let part, let offset) = state else { return }
    do { try part.truncate(to: offset) } catch {
      become(.unusable(.storage(error)))
      throw error
    }
  }

  /// Takes the next piece of a request's body.
  func append(_ piece: [UInt8], from writer: UploadWriter) async throws {
    try await run { [self] in
      guard self.writer === writer, case .receiving(let part, let offset) = state else {
        throw ServiceError.uploadTakenOver(id)
      }
      do throws(StorageError) { try part.append(piece.span) } catch {
        if part.isBroken { become(.unusable(.storage(error))) }
        throw error
      }
      writer.took(piece)
      if writer.checksum == nil { state = .receiving(part, offset: offset + Int64(piece.count)) }
      try checkNowAndThen(Int64(piece.count))
    }
  }

  private func checkNowAndThen(_ bytes: Int64) throws {
    bytesSinceCheck += bytes
    let isDue =
      bytesSinceCheck >= dependencies.configuration.uploadCheckpointBytes
      || checkpointAt + .seconds(dependencies.configuration.uploadCheckpointSeconds) < .now
    guard isDue else { return }
    bytesSinceCheck = 0
    checkpointAt = .now
    try checkpoint()
    try dependencies.admission.checkDiskNow(for: 0)
  }

  /// A request has ended. `isWhole`: all of its body has come. What counts is kept; throws `.checksumMismatch` where
  /// the body is not what its checksum says.
  func end(_ writer: UploadWriter, isWhole: Bool) async throws -> UploadStatus {
    try await run { [self] in
      guard self.writer === writer, case .receiving(let part, _) = state else {
        throw ServiceError.uploadTakenOver(id)
      }
      self.writer = nil
      if let checksum = writer.checksum {
        if isWhole, writer.isAsSaid {
          state = .receiving(part, offset: part.byteCount)
        } else {
          try dropUncounted()
          if isWhole { throw ServiceError.checksumMismatch(checksum.algorithm.rawValue) }
        }
      }
      return try statusNow()
    }
  }

  // MARK: Ending

  /// Makes the recording of an upload whose bytes are all here, once, whoever asks and how often.
  ///
  /// Throws what the probe says of it; an upload that is no recording is gone then, but for the answer to whom asks
  /// again.
  func finish() async throws -> UploadStatus {
    let making = try await run { [self] () -> Task<Void, any Error>? in
      let upload = try openAlive()
      if upload.recording != nil { return nil }
      guard case .receiving(let part, let offset) = state, offset == upload.length else {
        throw ServiceError.wrongUploadOffset(given: upload.length, actual: upload.offset)
      }
      if let finishing { return finishing }
      let task = Task { try await self.makeRecording(of: part) }
      finishing = task
      return task
    }
    try await making?.value
    return try await status()
  }

  private func makeRecording(of part: UploadPart) async throws {
    do {
      let client = try await run { [self] in Client(key: try open().client) }
      // Where there is none the upload stays, and may be tried again.
      let room = try dependencies.admission.runner.reserve(for: client)
      let probe = try await dependencies.admission.probe(path: part.path, bytes: part.byteCount, for: client)
      let (recording, job) = try await run { [self] in try keep(part, probe) }
      dependencies.admission.runner.submit(job, source: recording, room: room)
    } catch {
      try await run { [self] in
        finishing = nil
        if case ServiceError.rejectedByProbe(let code, let detail) = error {
          try removeNow(
            .rejectedByProbe(code: code, detail: detail), keeping: UploadRefusal(code: code, detail: detail))
        }
      }
      throw error
    }
  }

  /// The order of writes is told in MediaStore+Uploads.
  private func keep(_ part: UploadPart, _ probe: Probe) throws -> (Recording, Job) {
    let upload = try open()
    let recordingID = RecordingID()
    let stored = try dependencies.store.adopt(part, as: recordingID, name: NewRecording.fileName(probe))
    let name = upload.metadata.flatMap { try? UploadMetadata($0) }?.fileName
    let new = NewRecording(recordingID, stored, name: name, probe, for: Client(key: upload.client))
    let expiresAt = dependencies.expiry(from: .now)
    do throws(StorageError) {
      try dependencies.catalog.insert(new.recording, jobs: [new.job], finishing: id, expiresAt: expiresAt)
    } catch {
      // A commit may have been made although it failed: then the next start decides.
      if (try? dependencies.catalog.recording(recordingID)) == .some(nil) {
        try? dependencies.store.remove(recordingID)
      }
      throw error
    }
    self.upload?.recording = recordingID
    self.upload?.expiresAt = expiresAt
    finishing = nil
    become(.finished)
    dependencies.store.removePart(of: id)
    dependencies.metrics.uploads.add(1)
    return (new.recording, new.job)
  }

  /// Removes it: row first, bytes after. Its recording, if it became one, stays. With `instant`, only where it expired
  /// before.
  func remove(ifExpiredBefore instant: Timestamp? = nil) async throws {
    let making = try await run { [self] in
      _ = try open()
      return finishing
    }
    // Whatever came of it, it is told to those who asked for it.
    _ = await making?.result
    try await run { [self] in
      let upload = try open()
      if let instant, upload.expiresAt >= instant { return }
      try removeNow(.noSuchUpload(id.text))
    }
  }

  /// Removes it, and where it was refused, what is remembered of that.
  func discard() async throws {
    do { try await remove() } catch ServiceError.rejectedByProbe {
      try await run { [self] in
        try UploadRefusal.forget(id, in: dependencies.catalog)
        become(.unusable(.noSuchUpload(id.text)))
      }
    }
  }

  /// Removes it where nothing of it has come and nobody is sending: for whom others have no room. False where it stays.
  func removeIfEmpty() async throws -> Bool {
    try await run { [self] in
      _ = try open()
      guard case .receiving(let part, let offset) = state, offset == 0, part.byteCount == 0, writer == nil else {
        return false
      }
      try removeNow(.noSuchUpload(id.text))
      return true
    }
  }

  private func removeNow(_ reason: ServiceError, keeping refusal: UploadRefusal? = nil) throws {
    try dependencies.catalog.deleteUpload(id, keeping: refusal?.answer(for: id))
    writer?.outcome.tell(.failure(reason))
    writer = nil
    dependencies.store.removePart(of: id)
    become(.unusable(reason))
  }
}
