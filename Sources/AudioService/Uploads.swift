import HTTP
import Processing
import Storage

/// `POST /v1/recordings`: the file's bytes, raw or as one part of a form, become a recording.
///
/// Nothing is answered 201 before bytes and row are durable; nothing of an upload that fails stays.
struct Uploads: Sendable {
  let context: Context

  @Sendable func create(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    var query = try QueryParameters(request)
    let nameAsked = query.string("name")
    try query.end()
    try await checkRoom(for: request.body.declaredLength ?? 0)
    request.body.limit(to: context.configuration.maximumUploadBytes)

    let received = try await receive(request)
    let probe: Probe
    do { probe = try await context.probes.probe(path: received.file.path) } catch {
      received.file.discard()
      throw error
    }
    let name = RecordingName(nameAsked ?? received.name, extension: probe.fileExtension).text
    let (recording, job) = try await keep(received.file, name: name, probe: probe)
    context.runner.submit(job)
    context.metrics.uploads.add(1)
    let document = context.document(recording)
    return try .json(.created, document, fields: ["Location": "/v1/recordings/\(recording.id)"])
  }

  /// Refuses by the head alone what can't be kept.
  private func checkRoom(for bytes: Int64) async throws {
    let limit = context.configuration.maximumUploadBytes
    guard bytes <= limit else { throw RequestBodyError.tooLarge(limit: limit) }
    guard context.runner.hasRoom else { throw ServiceError.queueFull(limit: context.configuration.maximumQueuedJobs) }
    let store = context.store
    let free = try await context.work.run { () throws(StorageError) in try store.freeBytes() }
    guard bytes <= free - context.configuration.reservedDiskBytes else { throw ServiceError.diskFull }
  }

  private struct Received {
    let file: IncomingFile
    let name: String?
  }

  private func receive(_ request: HTTPRequest) async throws -> Received {
    let store = context.store
    let file = try await context.work.run { () throws(StorageError) in try store.receive() }
    do {
      let name = try await receive(request, into: file)
      guard file.byteCount > 0 else { throw ServiceError.emptyUpload }
      return Received(file: file, name: name)
    } catch {
      file.discard()
      throw error
    }
  }

  /// Fills `file`; returns the name that the request gives it.
  private func receive(_ request: HTTPRequest, into file: IncomingFile) async throws -> String? {
    guard let type = request.fields["Content-Type"], type.lowercased().hasPrefix("multipart/form-data") else {
      while let piece = try await request.body.read() { try await append(piece, to: file) }
      return request.fields["Content-Disposition"].flatMap { ParameterizedValue($0)?.filename }
    }
    guard var form = MultipartReader(contentType: type, body: request.body) else {
      throw Problem(
        .badRequest, code: "invalid_multipart", detail: "The Content-Type has no valid boundary.",
        parameter: "Content-Type")
    }
    var name: String?
    var hasFile = false
    while let part = try await form.nextPart() {
      guard part.name == "file", !hasFile else {
        throw Problem(
          .badRequest, code: "invalid_multipart",
          detail: "The form has a part “\(part.name)”; one part “file” is expected.", parameter: part.name)
      }
      hasFile = true
      name = part.filename
      while let piece = try await form.read() { try await append(piece, to: file) }
    }
    guard hasFile else {
      throw Problem(
        .badRequest, code: "invalid_multipart", detail: "The form has no part “file”.", parameter: "file")
    }
    return name
  }

  private func append(_ piece: [UInt8], to file: IncomingFile) async throws {
    context.metrics.bytesReceived.add(piece.count)
    try await context.work.run { () throws(StorageError) in try file.append(piece.span) }
  }

  /// File first, rows after: what a crash leaves in between is a folder that no row owns, which the next start removes.
  private func keep(_ file: IncomingFile, name: String, probe: Probe) async throws -> (Recording, Job) {
    let (catalog, store) = (context.catalog, context.store)
    return try await context.work.run { () throws(StorageError) in
      let id = RecordingID()
      let stored = try store.adopt(file, as: id, name: "audio.\(probe.fileExtension)")
      let job = Job(kind: .waveform, recording: id)
      let recording = Recording(
        id: id, name: name, bytes: stored.bytes, sha256: stored.sha256, format: RecordingFormat(probe),
        waveformJob: job.id, audioFile: stored.name,
        warnings: probe.warnings.map { RecordingWarning(code: $0.code, detail: $0.detail) })
      do throws(StorageError) { try catalog.insert(recording, jobs: [job]) } catch {
        try? store.remove(id)
        throw error
      }
      return (recording, job)
    }
  }
}

extension RecordingFormat {
  init(_ probe: Probe) {
    self.init(
      container: probe.container, codec: probe.codec, sampleRate: probe.sampleRate, channels: probe.channels,
      frames: probe.frames, estimatedFrames: probe.estimatedFrames,
      duration: probe.frames.map { Double($0) / Double(probe.sampleRate) })
  }
}
