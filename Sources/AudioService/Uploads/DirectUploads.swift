import HTTP
import Jobs
import Storage
import Synchronization
import Workers

/// `POST /v1/recordings`: makes a recording from a file sent whole in one request, either as the body or as a part of a
/// form.
///
/// A 201 is sent only once both file and row are durable, and a failed upload leaves nothing behind.
struct DirectUploads: Sendable {
  let context: Context

  @Sendable func create(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    let nameAsked = try QueryParameters(request, known: ["name"]).string("name")
    try request.requireNoCoding()
    return try await context.idempotency.once(request, caller) { key in
      if let key, key.kept != nil { return try await answerAgain(request, key, nameAsked: nameAsked) }
      return try await create(request, caller, key, nameAsked: nameAsked)
    }
  }

  private func create(
    _ request: HTTPRequest, _ caller: Caller, _ key: IdempotencyKey?, nameAsked: String?
  ) async throws -> HTTPResponse {
    let (client, token) = (caller.client, caller.uploadToken)
    let length = request.body.declaredLength ?? 0
    try caller.checkLength(length)
    let share = try await context.announce(length, of: caller)
    let room = try await context.admission.reserveRoom(for: length, of: client)
    let catalog = caller.catalog
    try await context.work.run { () throws(StorageError) in
      try catalog.checkFile()
      try catalog.check(token?.spent)
    }
    try await context.questions?.ask(
      request, caller, kind: "file", name: nameAsked, bytes: request.body.declaredLength)
    request.body.limit(to: caller.uploadLimit)

    let received = try await receive(request, share)
    let (file, name, id) = (received.file, nameAsked ?? received.name, RecordingID(at: catalog.time))
    let made: Made
    do {
      made = try await context.admission.takeIn(file, as: id, for: client, at: catalog.time) { intake, early in
        try await keep(file, as: id, name: name, intake, early, caller, share, key)
      }
    } catch {
      file.discard()
      throw error
    }
    if made.job.state == .queued {
      context.runner.submit(made.job, source: made.recording, room: room)
    } else {
      context.runner.announce(early: made.job)
    }
    context.metrics.uploads.add(1)
    return .changed(made.document, .created, location: made.location)
  }

  /// Reads the content only to decide if the request is the same as the first, and keeps none of it.
  private func answerAgain(
    _ request: HTTPRequest, _ key: IdempotencyKey, nameAsked: String?
  ) async throws -> HTTPResponse {
    request.body.limit(to: context.configuration.maximumUploadBytes)
    let hash = Mutex(SHA256())
    let name = try await read(request) { piece in hash.withLock { $0.update(piece.span) } }
    let digest = hash.withLock { $0.hexDigest() }
    guard let answer = try key.repeated(Self.fingerprint(digest, name: nameAsked ?? name)) else {
      preconditionFailure("only a key with an answer is answered again")
    }
    return answer
  }

  private static func fingerprint(_ sha256: String, name: String?) -> String {
    name.map { "\(sha256) \($0)" } ?? sha256
  }

  private struct Received {
    let file: IncomingFile
    let name: String?
  }

  /// A body without a declared length is announced as it arrives, so that it ends when it has more than the tenant may
  /// store.
  private func receive(_ request: HTTPRequest, _ share: AnnouncedBytes.Share) async throws -> Received {
    let (scratch, isAnnounced) = (context.scratch, request.body.declaredLength != nil)
    let file = try await context.work.run { () throws(StorageError) in try scratch.disk.receive() }
    do {
      let name = try await read(request) { piece in
        if !isAnnounced { try share.grow(by: Int64(piece.count)) }
        try await append(piece, to: file)
      }
      guard file.byteCount > 0 else { throw ServiceError.emptyUpload }
      return Received(file: file, name: name)
    } catch {
      file.discard()
      throw error
    }
  }

  /// Passes the file's bytes to `take`, and returns the file name that the request gives.
  private func read(_ request: HTTPRequest, _ take: ([UInt8]) async throws -> Void) async throws -> String? {
    guard let type = request.fields["Content-Type"], type.lowercased().hasPrefix("multipart/form-data") else {
      while let piece = try await request.body.read() { try await take(piece) }
      return request.fields["Content-Disposition"].flatMap { ParameterizedValue($0)?.filename }
    }
    guard var form = MultipartReader(contentType: type, body: request.body) else {
      throw RequestError.noBoundary
    }
    var name: String?
    var hasFile = false
    while let part = try await form.nextPart() {
      guard part.name == "file" || part.name == "files[]" || part.name == "file[]" else {
        // Another file would be lost.
        guard part.filename == nil else { throw RequestError.unexpectedPart(part.name) }
        var length = 0
        while let piece = try await form.read() {
          length += piece.count
          guard length <= Self.fieldLimit else { throw RequestError.longFormField(part.name, limit: Self.fieldLimit) }
        }
        continue
      }
      guard !hasFile else { throw RequestError.unexpectedPart(part.name) }
      hasFile = true
      name = part.filename
      while let piece = try await form.read() { try await take(piece) }
    }
    guard hasFile else { throw RequestError.noFilePart }
    return name
  }

  /// Maximum length of a form's other fields, in bytes.
  private static let fieldLimit = 64 << 10
  private static let bytesBetweenChecks: Int64 = 16 << 20

  /// Checks the disk again along the way: a chunked body didn't declare its length, and others write too.
  private func append(_ piece: [UInt8], to file: IncomingFile) async throws {
    context.metrics.bytesReceived.add(piece.count)
    let admission = context.admission
    try await context.work.run {
      let before = file.byteCount / Self.bytesBetweenChecks
      try file.append(piece.span)
      if file.byteCount / Self.bytesBetweenChecks != before { try admission.checkDiskNow(for: 0) }
    }
  }

  private struct Made {
    let recording: Recording
    let job: Job
    let location: String
    let document: JSONDocument
  }

  /// Moves the file first and inserts the rows after. A crash in between leaves a folder that no row owns, which the
  /// next start removes.
  private func keep(
    _ file: IncomingFile, as id: RecordingID, name: String?, _ intake: Intake, _ early: EarlyWaveform?,
    _ caller: Caller, _ share: AnnouncedBytes.Share, _ key: IdempotencyKey?
  ) async throws -> Made {
    let (blobs, scratch) = (context.blobs, context.scratch)
    let (catalog, limits) = (caller.catalog, context.accounts.stored(by: caller.tenant))
    let (token, location) = (caller.uploadToken?.spent, "/v1/recordings/\(id)")
    return try await context.storeWork.run(as: .transfer(caller.client)) {
      try caller.checkAdmission()
      let audio = NewRecording.fileName(intake.probe)
      let built = intake.analysis.flatMap { analysis in early.map { (waveform: $0, analysis: analysis) } }
      let made = built?.waveform.files(audio: audio) ?? []
      let lengths = made.map(\.byteCount)
      let stored = try blobs.adopt(file, as: id, name: audio, with: made)
      do {
        let now = catalog.time
        let new = NewRecording(
          id, stored, name: name, intake.probe, for: caller.client, at: now, job: early?.job)
        var recording = new.recording
        if let built { built.waveform.note(built.analysis, lengths: lengths, in: &recording) }
        let document = try JSONDocument(RecordingDocument(recording, live: nil))
        let answer = key?.answer(
          Self.fingerprint(stored.sha256, name: name), .created, location: location, document, at: now)
        var job = new.job
        // From here on, the row counts.
        share.end()
        if let built {
          job = try built.waveform.insert(
            recording, into: catalog, scratch, answer: answer, spending: token, within: limits)
        } else {
          try catalog.insert(recording, jobs: [job], answer: answer, spending: token, within: limits)
        }
        return Made(recording: recording, job: job, location: location, document: document)
      } catch {
        // A commit may have succeeded although it reported a failure, or be waiting for a standby; then the next start
        // decides, or in a shared folder its upkeep.
        if !StorageError.isUncertain(error), (try? catalog.recording(id)) == .some(nil) { try? blobs.remove(id) }
        throw error
      }
    }
  }
}
