// Of the nodes that are asked to finish an upload, one fetches what others received, probes it and makes the recording:
// the one that holds a key of the upload in the catalog (HeldKeys). Its lease is renewed meanwhile, so if that node is
// lost, another one finishes the upload. Until then, the others answer that it is being done.
//
// A node that was stopped for longer than its lease may still end what it began: the transaction that names the
// recording accepts the first, and the other's object is removed.

import Jobs
import Storage
import Workers

extension UploadSession {
  /// Makes the recording of a complete upload, once, no matter how many requests ask for it.
  ///
  /// Throws `.uploadIsFinishing` if another node is doing that, and the probe's error. Removes an upload that isn't a
  /// recording but keeps the refusal, to repeat it.
  func finish() async throws -> UploadStatus {
    let making = try await turns.run { [self] () -> Task<Void, any Error>? in
      let upload = try openAlive()
      if let finishing { return finishing }
      if case .finished = state { return nil }
      let task = Task { try await self.makeRecording(for: Client(key: upload.client)) }
      finishing = task
      return task
    }
    try await making?.value
    return try await status()
  }

  private func makeRecording(for client: Client) async throws {
    var failure: (any Error)?
    do {
      if try await turns.run({ [self] in try claim() }) { try await makeClaimed(for: client) }
    } catch {
      failure = error
    }
    let isFinished = try await turns.run { [self, failure] in
      defer {
        dependencies.heldKeys.release(claimName)
        finishing = nil
      }
      guard let failure else { return true }
      if isFinishedElsewhere(despite: failure) { return true }
      if case ServiceError.rejectedByProbe(let code, let detail) = failure {
        try removeNow(
          .rejectedByProbe(code: code, detail: detail),
          keeping: UploadRefusal(code: code, detail: detail, token: upload?.token))
      }
      return false
    }
    if let failure, !isFinished { throw failure }
  }

  // MARK: The claim

  private var claimName: HeldKeys.Name { HeldKeys.Name(tenant: tenant, scope: "finishing an upload", key: id.text) }

  /// Takes the right to finish the upload, which costs nothing unless other processes share the catalog. Returns false
  /// if one of them has made the recording; throws `.uploadIsFinishing` if one has the right.
  private func claim() throws -> Bool {
    guard case .held = try dependencies.heldKeys.hold(claimName) else { throw ServiceError.uploadIsFinishing(id) }
    // The one that had it before may have ended after the row was read.
    _ = try open()
    if case .finished = state { return false }
    return true
  }

  /// Whether another process has made a recording of the upload, which explains `error`: it removes the bytes then.
  private func isFinishedElsewhere(despite error: any Error) -> Bool {
    guard dependencies.catalog.isShared, !StorageError.isUncertain(error), (try? open()) != nil else { return false }
    if case .finished = state { return true }
    return false
  }

  // MARK: The recording

  private func makeClaimed(for client: Client) async throws {
    guard let part = try await turns.run(transferringFor: { client }, { [self] in try join() }) else { return }
    // If there's no room, the upload stays and can be retried.
    let room = try dependencies.admission.runner.reserve(for: client)
    let probe = try await dependencies.admission.probe(path: part.path, bytes: part.byteCount, for: client)
    let made = try await turns.run(transferringFor: { client }, { [self] in try keep(part, probe) })
    if let (recording, job) = made {
      dependencies.admission.runner.submit(job, source: recording, room: room)
    }
  }

  /// Returns the file with all bytes; nil if the upload has become a recording.
  private func join() throws -> UploadPart? {
    let upload = try open()
    if case .elsewhere = state, upload.offset == upload.length { try takeOver(at: upload.offset) }
    if case .finished = state { return nil }
    guard case .receiving(let bytes, let offset) = state, offset == upload.length else {
      throw ServiceError.wrongUploadOffset(given: upload.length ?? .max, actual: upload.offset)
    }
    return try bytes.join()
  }

  /// Returns the file with all bytes of a complete upload, to be joined with others.
  func wholePart() async throws -> UploadPart {
    let part = try await turns.run(transferringFor: { [self] in Client(key: try open().client) }) { [self] in
      _ = try openAlive()
      return try join()
    }
    guard let part else { throw ServiceError.noSuchUpload(id.text) }
    return part
  }

  /// MediaStore+Uploads explains the order of the writes. Returns nil if another process has made the recording.
  private func keep(_ part: UploadPart, _ probe: Probe) throws -> (Recording, Job)? {
    let upload = try open()
    if case .finished = state { return nil }
    let recordingID = RecordingID(at: catalog.time)
    let stored = try dependencies.blobs.adopt(part, as: recordingID, name: NewRecording.fileName(probe))
    let name = upload.metadata.flatMap { try? UploadMetadata($0) }?.fileName
    let new = NewRecording(recordingID, stored, name: name, probe, for: Client(key: upload.client), at: catalog.time)
    let expiresAt = dependencies.expiry(from: catalog.time)
    do throws(StorageError) {
      try catalog.insert(
        new.recording, jobs: [new.job], finishing: id, expiresAt: expiresAt,
        within: dependencies.accounts.stored(by: tenant))
    } catch {
      // As for direct uploads.
      if !StorageError.isUncertain(error), (try? catalog.recording(recordingID)) == .some(nil) {
        try? dependencies.blobs.remove(recordingID)
      }
      throw error
    }
    self.upload?.recording = recordingID
    self.upload?.expiresAt = expiresAt
    become(.finished)
    removeFiles(of: upload)
    dependencies.metrics.uploads.add(1)
    return (new.recording, new.job)
  }

  // MARK: Removal

  /// Removes the upload: the row first, then the bytes. A recording made from it stays. With `instant`, removes it only
  /// if it expired before that.
  func remove(ifExpiredBefore instant: Timestamp? = nil) async throws {
    let making = try await turns.run { [self] in
      _ = try open()
      return finishing
    }
    // The result goes to the requests that started it.
    _ = await making?.result
    try await turns.run { [self] in
      let upload = try open()
      if let instant, upload.expiresAt >= instant { return }
      try removeNow(.noSuchUpload(id.text), ifExpiredBefore: instant)
    }
  }

  /// Removes the upload, and the stored refusal if there is one.
  func discard() async throws {
    do { try await remove() } catch ServiceError.rejectedByProbe {
      try await turns.run { [self] in
        try UploadRefusal.forget(id, in: catalog)
        become(.unusable(.noSuchUpload(id.text)))
      }
    }
  }

  /// Removes the upload if it has no bytes and no writer, to make room for others. Returns false if it stays.
  func removeIfEmpty() async throws -> Bool {
    try await turns.run { [self] in
      let upload = try open()
      switch state {
      case .receiving(let bytes, let offset) where offset == 0 && bytes.byteCount == 0 && writer == nil: break
      // Nobody has begun to send it.
      case .elsewhere where upload.offset == 0 && upload.writer == 0: break
      default: return false
      }
      // Another process may begin to send it now.
      return try removeNow(.noSuchUpload(id.text), ifEmpty: true)
    }
  }

  /// Returns false if the upload stays, because it isn't any more what it was to be removed for.
  @discardableResult
  private func removeNow(
    _ reason: ServiceError, keeping refusal: UploadRefusal? = nil, ifExpiredBefore instant: Timestamp? = nil,
    ifEmpty: Bool = false
  ) throws -> Bool {
    let upload = upload
    let isConditional = refusal != nil || ifEmpty
    let isDeleted = try dependencies.blobs.makingRoom { () throws(StorageError) in
      try catalog.deleteUpload(
        id, keeping: refusal?.answer(for: id, at: catalog.time), ifExpiredBefore: instant,
        unfinishedBy: isConditional ? upload?.writer : nil, ifEmpty: ifEmpty)
    }
    // Another process has received more in the meantime, or made a recording of it.
    if !isDeleted, instant != nil || isConditional, try catalog.upload(id) != nil {
      state = .unopened
      return false
    }
    writer?.outcome.tell(.failure(reason))
    writer = nil
    if let upload { removeFiles(of: upload) }
    become(.unusable(reason))
    return true
  }

  private func removeFiles(of upload: Upload) {
    if upload.writer == 0 { dependencies.spool.removePart(of: id) } else { dependencies.spool.removeParts(of: id) }
  }
}
