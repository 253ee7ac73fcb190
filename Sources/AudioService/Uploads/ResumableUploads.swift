import HTTP
import Storage

/// `/v1/uploads`: tus 1.0.0 with creation, creation-with-upload, termination, expiration, and checksum.
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
      try request.refuseConcatenation()
      guard try request.tusMethod() == .post else { throw RoutingError.methodNotAllowed(allowed: [.options, .post]) }
      let length = try announcedLength(request, caller)
      let metadata = request.fields["Upload-Metadata"]
      _ = try metadata.map { text throws(RequestError) in try UploadMetadata(text) }
      let checksum = try request.uploadChecksum()
      let hasBytes = request.body.declaredLength != 0
      if hasBytes { try request.requireUploadBytes() }
      try checkBody(request, fits: length)
      let client = caller.client
      try await context.checkUsage(of: caller, adding: length)
      try await context.admission.checkRoom(for: length, of: client)
      let name = metadata.flatMap { try? UploadMetadata($0) }?.fileName
      try await context.questions?.ask(request, caller, kind: "resumable", name: name, bytes: length)
      try caller.checkAdmission()

      let id = try await context.uploads.create(
        length: length, metadata: metadata, of: caller.tenant, for: client, with: caller.uploadToken?.spent)
      return try await context.uploads.using(id, by: caller) { session in
        do {
          var status = try await session.status()
          if hasBytes { status = try await receive(request, caller, into: session, status, checksum) }
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

  private func announcedLength(_ request: HTTPRequest, _ caller: Caller) throws -> Int64 {
    guard !request.fields.contains("Upload-Defer-Length") else {
      throw RequestError.invalidField("Upload-Defer-Length", .immediateLength)
    }
    let length = try request.byteCount("Upload-Length")
    guard length > 0 else { throw RequestError.emptyUploadAnnounced }
    do { try caller.checkLength(length) } catch RequestBodyError.tooLarge(let limit) {
      throw RequestError.uploadTooLarge(limit: limit)
    }
    return length
  }

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
    let status = status.isComplete ? try await session.finish() : status
    var fields = fields(of: status)
    fields["Upload-Length"] = "\(status.length)"
    fields["Upload-Metadata"] = status.metadata
    return HTTPResponse(.ok, fields: fields)
  }

  private func append(
    _ request: HTTPRequest, _ caller: Caller, to session: UploadSession, _ status: UploadStatus
  ) async throws -> HTTPResponse {
    try request.requireUploadBytes()
    let offset = try request.byteCount("Upload-Offset")
    let checksum = try request.uploadChecksum()
    guard offset == status.offset else {
      throw ServiceError.wrongUploadOffset(given: offset, actual: status.offset)
    }
    try checkBody(request, fits: status.length - offset)
    if status.isComplete {
      // There's nothing left to send. An empty body is accepted and disturbs no other request; a longer one is too
      // large.
      _ = try await request.body.read()
      return HTTPResponse(.noContent, fields: fields(of: try await session.finish()))
    }
    try await context.admission.checkDisk(for: request.body.declaredLength ?? 0)
    let received = try await receive(request, caller, into: session, status, checksum)
    return HTTPResponse(.noContent, fields: fields(of: received))
  }

  private func checkBody(_ request: HTTPRequest, fits rest: Int64) throws {
    request.body.limit(to: rest)
    if let declared = request.body.declaredLength, declared > rest { throw RequestBodyError.tooLarge(limit: rest) }
  }

  private func receive(
    _ request: HTTPRequest, _ caller: Caller, into session: UploadSession, _ status: UploadStatus,
    _ checksum: UploadChecksum?
  ) async throws -> UploadStatus {
    let writer = try await session.begin(at: status.offset, checksum: checksum)
    // A separate task: this one must be able to answer while the other still waits for the body of a client that has
    // silently disconnected. The end of the connection ends that wait.
    request.body.startReader { await pump(request.body, into: session, as: writer) }
    do { try await writer.outcome.value() } catch {
      // The bytes received so far count. If they can't be made durable, the row has a smaller offset, and the client
      // sends them again.
      _ = try? await session.end(writer, isWhole: false)
      throw error
    }
    let status = try await session.end(writer, isWhole: true)
    try caller.checkAdmission()
    return status.isComplete ? try await session.finish() : status
  }

  private func pump(_ body: RequestBody, into session: UploadSession, as writer: UploadWriter) async {
    do {
      while let piece = try await body.read() {
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
