// An upload's offset is a promise: a reported offset is in the row, and the part file durably has all bytes up to the
// row's offset.
//
//   bytes arrive    they're written to the part file, and counted (`offset`) unless a checksum has yet to be compared
//   a checkpoint    fsync of the part, then a commit of the row; regularly by bytes and seconds, and before any answer
//                   with an offset
//   a crash         the part is truncated to the row's offset: reported bytes are there, others are sent again
//   a request ends  for whatever reason: the bytes received and counted are kept
//   another node    takes over at the row's offset, and has a file of its own; what the former writer records from then
//                   on is refused (Catalog.takeOver)
//
// Only one request writes at a time. A newer one that names the current offset takes over: the older is usually dead
// without the service noticing, such as after a phone changed networks. A request that names another offset doesn't
// disturb the writer.

import Glibc
import HTTP
import Jobs
import Storage
import Synchronization
import Terms
import Workers

/// The state of an upload. Everything up to `offset` is durable.
struct UploadStatus: Sendable {
  let offset: Int64
  let length: Int64?
  let metadata: String?
  let concatenation: String?
  let expiresAt: Timestamp
  let recording: RecordingID?

  /// Whether all bytes have been received.
  var isComplete: Bool { offset == length }

  /// Whether the upload is for being joined with others.
  var isPartial: Bool { concatenation == Concatenation.partialName }
}

// @unchecked Sendable: everything that changes is used by work in `turns` only.

/// A resumable upload with a request in progress.
final class UploadSession: @unchecked Sendable {
  enum State {
    /// The row hasn't been read yet.
    case unopened
    /// Accepts bytes; those up to `offset` count.
    case receiving(any UploadBytes, offset: Int64)
    /// Another process may be receiving it: what counts is in the row. Only if processes share the catalog.
    case elsewhere
    /// The upload has become a recording.
    case finished
    /// The session can't be used: the upload is gone, or must be opened again after an error.
    case unusable(ServiceError)
  }

  let id: UploadID
  let tenant: Tenant
  let dependencies: Dependencies
  let catalog: TenantCatalog
  let turns: UploadTurns
  var state = State.unopened
  /// As it stands in the catalog.
  var upload: Upload?
  /// Why the upload is gone, if it isn't a recording and was removed before this session began.
  private var refusal: UploadRefusal?
  var writer: UploadWriter?
  /// Makes the recording.
  var finishing: Task<Void, any Error>?
  private var checkpointAt: Clock.Instant
  private var bytesSinceCheck: Int64 = 0
  private let spent = Atomic<Bool>(false)

  init(_ id: UploadID, of tenant: Tenant, _ dependencies: Dependencies) {
    (self.id, self.tenant, self.dependencies) = (id, tenant, dependencies)
    catalog = dependencies.catalog.of(tenant)
    turns = UploadTurns(dependencies.storeWork)
    checkpointAt = dependencies.configuration.clock.now
  }

  /// Whether the next request for this upload needs a new session.
  var isSpent: Bool { spent.load(ordering: .acquiring) }

  // MARK: Opening

  /// Reads the row, if the session's state may not be the current one. Throws if the session can't be used.
  func open() throws -> Upload {
    if dependencies.catalog.isShared { try lookElsewhere() }
    if case .unopened = state {
      do { try load() } catch {
        become(.unusable(error as? ServiceError ?? .storage(error as? StorageError ?? .noSuchUpload(id))))
      }
    }
    if case .unusable(let error) = state { throw error }
    guard let upload else { throw ServiceError.noSuchUpload(id.text) }
    return upload
  }

  /// Opens the part at the row's offset: after a crash, anything may follow it.
  private func load() throws {
    guard var upload = try catalog.upload(id) else {
      refusal = try UploadRefusal(of: id, in: catalog)
      throw refusal?.error ?? ServiceError.noSuchUpload(id.text)
    }
    defer { self.upload = upload }
    guard upload.recording == nil else { return become(.finished) }
    guard !dependencies.catalog.isShared else { return state = .elsewhere }
    guard let part = try dependencies.spool.openPart(of: id) else {
      try catalog.deleteUpload(id)
      throw ServiceError.noSuchUpload(id.text)
    }
    if part.byteCount < upload.offset {
      // These bytes weren't lost in a crash; see LostParts.
      upload.offset = part.byteCount
      try catalog.advance(id, to: upload.offset, expiresAt: upload.expiresAt)
    }
    try part.truncate(to: upload.offset)
    state = .receiving(UploadFiles(part), offset: upload.offset)
  }

  /// Takes in what another process may have done with the upload.
  private func lookElsewhere() throws {
    switch state {
    case .receiving, .elsewhere: break
    case .unopened, .finished, .unusable: return
    }
    guard let row = try catalog.upload(id) else {
      try endWriter(.noSuchUpload(id.text))
      return become(.unusable(try UploadRefusal(of: id, in: catalog)?.error ?? .noSuchUpload(id.text)))
    }
    if case .receiving = state, row.recording == nil, row.writer == upload?.writer { return }
    handOver()
    upload = row
    if row.recording != nil { become(.finished) }
  }

  /// Ends this process's writing, because another one receives the upload.
  private func handOver() {
    writer?.outcome.tell(.failure(ServiceError.uploadTakenOver(id)))
    writer = nil
    state = .elsewhere
  }

  /// Makes this process the one that receives the upload, unless another has made a recording of it meanwhile.
  func takeOver(at offset: Int64) throws {
    do throws(StorageError) { upload = try catalog.takeOver(id, at: offset) } catch {
      let row = try catalog.upload(id)
      if let row, row.recording != nil {
        upload = row
        return become(.finished)
      }
      guard error == .changedMeanwhile else { throw error }
      throw ServiceError.wrongUploadOffset(given: offset, actual: row?.offset ?? 0)
    }
    guard let bytes = try dependencies.spool.begin(try catalog.segments(of: id), at: offset) else {
      throw StorageError.io(operation: "open", path: id.text, errno: ENOENT)
    }
    state = .receiving(bytes, offset: offset)
  }

  /// Opens the upload like `open`; throws also if it has expired.
  func openAlive() throws -> Upload {
    let upload = try open()
    guard upload.expiresAt > catalog.time || catalog.doubtsClock else { throw ServiceError.uploadExpired(id) }
    return upload
  }

  /// Enters a last state: the next request needs a new session.
  func become(_ next: State) {
    state = next
    spent.store(true, ordering: .releasing)
  }

  /// Throws `.noSuchUpload` unless the upload was begun with this token. That of a refused upload counts, too.
  func check(begunWith token: String) async throws {
    try await turns.run { [self] in
      do { _ = try open() } catch ServiceError.rejectedByProbe {}
      guard (upload?.token ?? refusal?.token) == token else { throw ServiceError.noSuchUpload(id.text) }
    }
  }

  // MARK: Status

  /// Returns the upload's state, after making it durable.
  func status() async throws -> UploadStatus {
    try await turns.run(transferringFor: checkpointingClient) { [self] in
      _ = try openAlive()
      return try statusNow()
    }
  }

  private func statusNow() throws -> UploadStatus {
    try checkpoint()
    let upload = try open()
    return UploadStatus(
      offset: upload.offset, length: upload.length, metadata: upload.metadata, concatenation: upload.concatenation,
      expiresAt: upload.expiresAt, recording: upload.recording)
  }

  /// Returns whose bytes a checkpoint would transfer; nil if there are none.
  @Sendable private func checkpointingClient() -> Client? {
    guard case .receiving(_, let offset) = state, let upload, offset > upload.offset else { return nil }
    return Client(key: upload.client)
  }

  /// Makes the counted bytes durable, then updates the row.
  private func checkpoint() throws {
    guard case .receiving(let part, let offset) = state, var upload, offset > upload.offset else { return }
    let objects: [UploadObject]
    let added = offset - upload.offset
    do { objects = try part.sync(to: offset) } catch {
      // What is on disk now is unknown, so the upload has to be opened again, at the row's offset.
      become(.unusable(.storage(error)))
      throw error
    }
    upload.offset = offset
    upload.expiresAt = dependencies.expiry(from: catalog.time)
    do throws(StorageError) {
      try catalog.advance(id, to: offset, expiresAt: upload.expiresAt, by: upload.writer, adding: objects)
    } catch {
      guard error == .uploadTakenOver(id) else {
        // If no row names the objects, the bytes count only once they have been sent again.
        if !objects.isEmpty { become(.unusable(.storage(error))) }
        throw error
      }
      handOver()
      throw ServiceError.uploadTakenOver(id)
    }
    self.upload = upload
    writer?.share?.shrink(by: added)
    checkpointAt = dependencies.configuration.clock.now
  }

  // MARK: Receiving

  /// Makes the caller the writer, from `offset` on, in place of the current one. `length` is that of an upload that was
  /// begun without one, if it is known now. `share` counts what the row doesn't count yet of an upload without one.
  func begin(
    at offset: Int64, checksum: UploadChecksum?, length: Int64? = nil, counted share: AnnouncedBytes.Share? = nil
  ) async throws -> UploadWriter {
    try await turns.run(transferringFor: checkpointingClient) { [self] in
      _ = try openAlive()
      let status = try statusNow()
      if offset == status.offset, case .elsewhere = state { try takeOver(at: offset) }
      guard offset == status.offset, case .receiving = state else {
        throw ServiceError.wrongUploadOffset(given: offset, actual: status.offset)
      }
      try endWriter(.uploadTakenOver(id))
      if let length {
        try catalog.announce(length, of: id)
        upload?.length = length
        share?.end()
      }
      let writer = UploadWriter(checksum, counted: share)
      self.writer = writer
      return writer
    }
  }

  /// Removes the current writer; bytes that it sent under a checksum don't count.
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

  /// Appends the next piece of a request's body.
  func append(_ piece: [UInt8], from writer: UploadWriter) async throws {
    let isDue = try await turns.run { [self] in
      guard self.writer === writer, case .receiving(let part, let offset) = state else {
        throw ServiceError.uploadTakenOver(id)
      }
      do throws(StorageError) { try part.append(piece.span) } catch {
        if part.isBroken { become(.unusable(.storage(error))) }
        throw error
      }
      writer.took(piece)
      if writer.checksum == nil { state = .receiving(part, offset: offset + Int64(piece.count)) }
      return isCheckpointDue(after: Int64(piece.count))
    }
    guard isDue else { return }
    try await turns.run(transferringFor: checkpointingClient) { [self] in
      try checkpoint()
      try dependencies.admission.checkDiskNow(for: 0)
    }
  }

  private func isCheckpointDue(after bytes: Int64) -> Bool {
    let configuration = dependencies.configuration
    bytesSinceCheck += bytes
    let isDue =
      bytesSinceCheck >= configuration.uploadCheckpointBytes
      || configuration.clock.seconds(since: checkpointAt) > configuration.uploadCheckpointSeconds
    if isDue { (bytesSinceCheck, checkpointAt) = (0, configuration.clock.now) }
    return isDue
  }

  /// Ends a request's writing and keeps the bytes that count. `isWhole` says if its whole body was received. Throws
  /// `.checksumMismatch` if the body doesn't match its checksum.
  func end(_ writer: UploadWriter, isWhole: Bool) async throws -> UploadStatus {
    // Apart from the checkpoint: that may be refused because too much waits for the store.
    try await turns.run { [self] in try settle(writer, isWhole: isWhole) }
    return try await turns.run(transferringFor: checkpointingClient) { [self] in try statusNow() }
  }

  /// Ends the writer, and counts what it sent under a checksum.
  private func settle(_ writer: UploadWriter, isWhole: Bool) throws {
    guard self.writer === writer, case .receiving(let part, _) = state else { throw ServiceError.uploadTakenOver(id) }
    self.writer = nil
    guard let checksum = writer.checksum else { return }
    if isWhole, writer.isAsSaid {
      state = .receiving(part, offset: part.byteCount)
    } else {
      try dropUncounted()
      if isWhole { throw ServiceError.checksumMismatch(checksum.algorithm.rawValue) }
    }
  }
}
