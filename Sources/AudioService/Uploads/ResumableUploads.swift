import HTTP
import Storage

/// `/v1/uploads`: tus 1.0.0 with all of its extensions but `checksum-trailer`.
///
/// A reported offset survives every crash. The last byte makes the recording, exactly once; until that is done, no
/// answer reports the upload as complete.
struct ResumableUploads: Sendable {
  let context: Context

  /// Every answer has the version; the responder adds it to errors.
  private func answering(_ body: () async throws -> HTTPResponse) async throws -> HTTPResponse {
    var response = try await body()
    response.fields["Tus-Resumable"] = Tus.version
    return response
  }

  // MARK: All uploads

  /// `OPTIONS /v1/uploads`: the supported version, extensions, and limits.
  @Sendable func describe(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try await answering {
      try QueryParameters.checkNone(request)
      return HTTPResponse(
        .noContent,
        fields: [
          "Allow": "OPTIONS, POST", "Tus-Version": Tus.version, "Tus-Extension": Tus.extensions,
          "Tus-Max-Size": "\(context.configuration.maximumUploadBytes)",
          "Tus-Checksum-Algorithm": Tus.checksumAlgorithms,
        ])
    }
  }

  /// `POST /v1/uploads`: creates an upload; the request may already hold its first bytes.
  @Sendable func create(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try await answering {
      try QueryParameters.checkNone(request)
      try request.requireTus()
      let concatenation = try request.concatenation(caller)
      guard try request.tusMethod() == .post else { throw RoutingError.methodNotAllowed(allowed: [.options, .post]) }
      let parts: [UploadID]
      if case .final(let named) = concatenation { parts = named } else { parts = [] }
      let length = parts.isEmpty ? try announcedLength(request, caller) : try await joinedLength(parts, request, caller)
      let metadata = request.fields["Upload-Metadata"]
      _ = try metadata.map { text throws(RequestError) in try UploadMetadata(text) }
      let checksum = try request.uploadChecksum()
      let hasBytes = request.body.declaredLength != 0
      if hasBytes { try request.requireUploadBytes() }
      try checkBody(request, fits: parts.isEmpty ? length ?? caller.uploadLimit : 0)
      let client = caller.client
      // Parts to join are counted already. The share ends once the row counts what was announced.
      let announced = length ?? request.body.declaredLength ?? 0
      let share = try await context.announce(parts.isEmpty ? announced : 0, of: caller)
      try await context.admission.checkRoom(for: length ?? 0, of: client)
      let name = metadata.flatMap { try? UploadMetadata($0) }?.fileName
      if concatenation != .partial {
        try await context.questions?.ask(request, caller, kind: "resumable", name: name, bytes: length)
      }
      try caller.checkAdmission()

      let id = try await context.uploads.create(
        length: length, metadata: metadata, concatenation: request.fields["Upload-Concat"], of: caller.tenant,
        for: client, with: caller.uploadToken?.spent)
      if length != nil { share.end() }
      return try await context.uploads.using(id, by: caller) { session in
        do {
          var status = try await session.status()
          if hasBytes {
            status = try await receive(
              request, caller, into: session, status, checksum, counted: length == nil ? share : nil)
          }
          if !parts.isEmpty { status = try await join(parts, into: session, caller) }
          var response = HTTPResponse(.created, fields: fields(of: status))
          response.fields["Location"] = "/v1/uploads/\(id)"
          return response
        } catch {
          // A client without the address can't continue, so the upload is removed.
          try? await session.discard()
          throw error
        }
      }
    }
  }

  /// Returns the length that the request announces; nil if it is to be given later.
  private func announcedLength(_ request: HTTPRequest, _ caller: Caller) throws -> Int64? {
    if let deferred = request.fields["Upload-Defer-Length"] {
      guard deferred == "1", !request.fields.contains("Upload-Length") else {
        throw RequestError.invalidField("Upload-Defer-Length", .deferredLength)
      }
      return nil
    }
    let length = try request.byteCount("Upload-Length")
    guard length > 0 else { throw RequestError.emptyUploadAnnounced }
    do { try caller.checkLength(length) } catch RequestBodyError.tooLarge(let limit) {
      throw RequestError.uploadTooLarge(limit: limit)
    }
    return length
  }

  // MARK: Joining

  /// Returns the sum of the lengths of complete partial uploads.
  private func joinedLength(_ parts: [UploadID], _ request: HTTPRequest, _ caller: Caller) async throws -> Int64 {
    for name in ["Upload-Length", "Upload-Defer-Length"] where request.fields.contains(name) {
      throw RequestError.invalidField(name, .noLengthOfJoined)
    }
    var length: Int64 = 0
    for part in parts {
      let status = try await context.uploads.using(part, by: caller) { try await $0.status() }
      guard status.isPartial, status.isComplete else {
        throw RequestError.invalidField("Upload-Concat", .concatenation)
      }
      length += status.offset
    }
    do { try caller.checkLength(length) } catch RequestBodyError.tooLarge(let limit) {
      throw RequestError.uploadTooLarge(limit: limit)
    }
    return length
  }

  /// Writes the bytes of partial uploads into one, and removes them once it is a recording.
  private func join(_ parts: [UploadID], into session: UploadSession, _ caller: Caller) async throws -> UploadStatus {
    let writer = try await session.begin(at: 0, checksum: nil)
    for part in parts {
      try await context.uploads.using(part, by: caller) { source in
        let file = try await source.wholePart()
        let content = try await context.work.run { () throws(FileContentError) in try FileContent(path: file.path) }
        for start in stride(from: 0, to: file.byteCount, by: Self.joinedPieceBytes) {
          let range = start..<min(start + Int64(Self.joinedPieceBytes), file.byteCount)
          let piece = try await context.work.run { () throws(FileContentError) in try content.read(range) }
          try await session.append(piece, from: writer)
        }
        withExtendedLifetime(file) {}
      }
    }
    _ = try await session.end(writer, isWhole: true)
    try caller.checkAdmission()
    let status = try await session.finish()
    for part in parts { try? await context.uploads.using(part, by: caller) { try await $0.remove() } }
    return status
  }

  private static let joinedPieceBytes = 1 << 18

  // MARK: One upload

  /// `HEAD`, `PATCH` and `DELETE /v1/uploads/{id}`, and `POST` with `X-HTTP-Method-Override`.
  @Sendable func serve(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try await answering {
      try QueryParameters.checkNone(request)
      try request.requireTus()
      let text = parameters["id"]
      guard let id = UploadID(text) else { throw ServiceError.noSuchUpload(text) }
      return try await context.uploads.using(id, by: caller) { session in
        let status: UploadStatus
        do { status = try await session.status() } catch ServiceError.rejectedByProbe
          where (try? request.tusMethod()) == .delete
        {
          try await session.discard()
          return HTTPResponse(.noContent)
        }
        switch try request.tusMethod() {
        case .head: return try await tell(session, status)
        case .patch: return try await append(request, caller, to: session, status)
        case .delete:
          try await session.remove()
          return HTTPResponse(.noContent)
        default: throw RoutingError.methodNotAllowed(allowed: [.delete, .head, .options, .patch])
        }
      }
    }
  }

  /// An upload can have all its bytes but no recording yet after a crash, or if the client didn't wait. It's reported
  /// as complete only once the recording is made.
  private func tell(_ session: UploadSession, _ status: UploadStatus) async throws -> HTTPResponse {
    let status = try await finished(session, status)
    var fields = fields(of: status)
    if let length = status.length { fields["Upload-Length"] = "\(length)" } else { fields["Upload-Defer-Length"] = "1" }
    fields["Upload-Metadata"] = status.metadata
    fields["Upload-Concat"] = status.concatenation
    return HTTPResponse(.ok, fields: fields)
  }

  private func append(
    _ request: HTTPRequest, _ caller: Caller, to session: UploadSession, _ status: UploadStatus
  ) async throws -> HTTPResponse {
    if status.concatenation?.hasPrefix(Concatenation.finalMark) == true { throw RequestError.joinedUploads }
    try request.requireUploadBytes()
    let offset = try request.byteCount("Upload-Offset")
    let checksum = try request.uploadChecksum()
    guard offset == status.offset else {
      throw ServiceError.wrongUploadOffset(given: offset, actual: status.offset)
    }
    let (length, share) = try await newLength(request, status, caller)
    try checkBody(request, fits: (status.length ?? length ?? caller.uploadLimit) - offset)
    if status.isComplete {
      // There's nothing left to send. An empty body is accepted and disturbs no other request; a longer one is too
      // large.
      _ = try await request.body.read()
      return HTTPResponse(.noContent, fields: fields(of: try await finished(session, status)))
    }
    try await context.admission.checkDisk(for: request.body.declaredLength ?? 0)
    let received = try await receive(
      request, caller, into: session, status, checksum, length: length, counted: share)
    return HTTPResponse(.noContent, fields: fields(of: received))
  }

  /// Returns the length that a request gives to an upload that was begun without one, or nil if it gives none, and what
  /// counts the request's bytes against what the tenant may store; nil if the upload's row counts them already.
  private func newLength(
    _ request: HTTPRequest, _ status: UploadStatus, _ caller: Caller
  ) async throws -> (Int64?, AnnouncedBytes.Share?) {
    guard request.fields.contains("Upload-Length") else {
      guard status.length == nil else { return (nil, nil) }
      return (nil, try await context.announce(request.body.declaredLength ?? 0, of: caller))
    }
    let length = try request.byteCount("Upload-Length")
    guard length == status.length ?? length, length >= max(status.offset, 1) else {
      throw RequestError.invalidField("Upload-Length", .lengthOnce(offset: status.offset))
    }
    guard status.length == nil else { return (nil, nil) }
    do { try caller.checkLength(length) } catch RequestBodyError.tooLarge(let limit) {
      throw RequestError.uploadTooLarge(limit: limit)
    }
    return (length, try await context.announce(length - status.offset, of: caller))
  }

  private func checkBody(_ request: HTTPRequest, fits rest: Int64) throws {
    request.body.limit(to: rest)
    if let declared = request.body.declaredLength, declared > rest { throw RequestBodyError.tooLarge(limit: rest) }
  }

  /// Receives the body. If neither it nor the upload has a declared length, each piece counts in `share` as it arrives.
  private func receive(
    _ request: HTTPRequest, _ caller: Caller, into session: UploadSession, _ status: UploadStatus,
    _ checksum: UploadChecksum?, length: Int64? = nil, counted share: AnnouncedBytes.Share?
  ) async throws -> UploadStatus {
    let writer = try await session.begin(at: status.offset, checksum: checksum, length: length, counted: share)
    let growing = length == nil && request.body.declaredLength == nil ? share : nil
    // A separate task: this one must be able to answer while the other still waits for the body of a client that has
    // silently disconnected. The end of the connection ends that wait.
    request.body.startReader { await pump(request.body, into: session, as: writer, growing) }
    do { try await writer.outcome.value() } catch {
      // The bytes received so far count. If they can't be made durable, the row has a smaller offset, and the client
      // sends them again.
      _ = try? await session.end(writer, isWhole: false)
      throw error
    }
    let status = try await session.end(writer, isWhole: true)
    try caller.checkAdmission()
    return try await finished(session, status)
  }

  /// Makes the recording if all bytes are there and the upload isn't for being joined with others.
  private func finished(_ session: UploadSession, _ status: UploadStatus) async throws -> UploadStatus {
    status.isComplete && !status.isPartial ? try await session.finish() : status
  }

  private func pump(
    _ body: RequestBody, into session: UploadSession, as writer: UploadWriter, _ share: AnnouncedBytes.Share?
  ) async {
    do {
      while let piece = try await body.read() {
        try share?.grow(by: Int64(piece.count))
        context.metrics.bytesReceived.add(piece.count)
        try await session.append(piece, from: writer)
      }
      writer.outcome.tell(.success(()))
    } catch {
      writer.outcome.tell(.failure(error))
    }
  }

  private func fields(of status: UploadStatus) -> HTTPFields {
    var fields: HTTPFields = [
      "Upload-Offset": "\(status.offset)", "Cache-Control": "no-store",
      "Upload-Expires": HTTPDate(seconds: status.expiresAt.milliseconds / 1000).text,
    ]
    fields["Stillwave-Recording"] = status.recording?.text
    return fields
  }
}
