import HTTP
import Jobs
import Storage
import Terms
import Workers

/// Listing, reading, renaming, and deleting recordings.
struct Recordings: Sendable {
  let context: Context

  @Sendable func list(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    let query = try QueryParameters(request, known: ["limit", "cursor", "q", "sort", "order"])
    let limit = try query.integer("limit", in: 1...1000) ?? 50
    let name = query.string("q")
    let key: RecordingOrder.Key = try query.choice("sort") ?? .created
    let direction: ListDirection? = try query.choice("order")
    let order = RecordingOrder(by: key, isAscending: direction.map { $0 == .asc } ?? (key != .created))
    let place = try query.string("cursor").map { text in
      guard let place = RecordingPlace(cursor: text) else { throw query.invalid("cursor", text, .cursor) }
      return place
    }
    let context = context
    return try await context.work.run {
      // One more than asked for, to see if there is another page.
      let ids = try caller.catalog.recordingIDs(limit: limit + 1, after: place, nameContaining: name, in: order)
      let found = try context.documents.list(ids, of: caller.tenant) {
        try caller.catalog.recordings(limit: limit + 1, after: place, nameContaining: name, in: order)
      }
      let page = found.prefix(limit)
      let next = found.count > limit ? page.last.map { RecordingPlace(after: $0.row, in: order).cursor } : nil
      let document = Self.document(page.map(\.bytes), next: next)
      return HTTPResponse.page(document, next: next, for: request).codedHere(for: request)
    }
  }

  /// Returns a page of encoded Recordings. Its members are those that encoding would give, in its order.
  private static func document(_ recordings: [[UInt8]], next: String?) -> JSONDocument {
    var bytes = Array("{\"next_cursor\":\(next.map { "\"\($0)\"" } ?? "null"),\"recordings\":[".utf8)
    bytes.reserveCapacity(recordings.reduce(bytes.count + 2) { $0 + $1.count + 1 })
    for (index, recording) in recordings.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      bytes += recording
    }
    bytes += "]}".utf8
    return JSONDocument(bytes: bytes)
  }

  @Sendable func read(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) throws -> HTTPAnswer {
    try QueryParameters.checkNone(request)
    let text = parameters["id"]
    guard let id = RecordingID(text) else { throw ServiceError.noSuchRecording(text) }
    if let known = context.documents.known(id, of: caller.tenant) { return .now(.changing(known, for: request)) }
    return .later { [context] in
      guard let document = try await context.documents.recording(id, of: caller.tenant) else {
        throw ServiceError.noSuchRecording(text)
      }
      return .changing(document, for: request)
    }
  }

  @Sendable func rename(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let recording = try await context.recording(parameters, caller)
    let members = try await JSONMembers(bodyOf: request, known: ["name": []])
    guard let name = try members.recordingName() else { throw members.invalid("name", .given) }
    let context = context
    let renamed = try await context.work.run { () throws(StorageError) in
      try caller.catalog.update(recording.id, if: { request.permitsChange(of: context.document($0)) }) {
        $0.name = name
      }
    }
    guard let renamed else { throw ServiceError.noSuchRecording(recording.id.text) }
    return .changed(try JSONDocument(context.document(renamed)))
  }

  /// Deletes the rows first, in one transaction, then kills children and removes files. A deletion whose outcome is
  /// unknown counts if the recording turns out to be gone; this node then hears of the canceled jobs as others do.
  @Sendable func delete(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let recording = try await context.recording(parameters, caller)
    let (context, blobs) = (context, context.blobs)
    let cancelled = try await context.work.run { () throws(StorageError) in
      do throws(StorageError) {
        return try blobs.makingRoom { () throws(StorageError) in
          try caller.catalog.deleteRecording(recording.id) { request.permitsChange(of: context.document($0)) }
        }
      } catch .outcomeUnknown {
        guard (try? caller.catalog.isGone(recording.id)) == true else { throw .outcomeUnknown }
        return []
      }
    }
    guard let cancelled else { throw ServiceError.noSuchRecording(recording.id.text) }
    context.runner.cancel(cancelled)
    try await removeFiles {
      do throws(StorageError) { try blobs.remove(recording.id) } catch {
        // No row owns the files any more: the recording is gone, and the next start removes what is left of it.
        context.log.failure(
          "a recording's files could not be removed", ["recording": recording.id.text, "error": logText(error)])
      }
    }
    return HTTPResponse(.noContent)
  }

  /// Runs `removal`, and waits for it unless that means to wait for another machine. If too much waits for that, the
  /// collection does it.
  private func removeFiles(_ removal: @escaping @Sendable () -> Void) async throws {
    if context.media.bucket == nil { return await context.work.run(removal) }
    context.storeWork.start(removal)
  }

  /// Rebuilds a waveform after a failure.
  @Sendable func rebuildWaveform(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let recording = try await context.recording(parameters, caller)
    guard recording.waveformState == .failed else {
      throw ServiceError.waveformIsNotFailed(recording.id, recording.waveformState)
    }
    try await context.checkAudio(of: recording)
    let client = caller.client
    let room = try context.runner.reserve(for: client)
    let (catalog, stored) = (caller.catalog, context.accounts.stored(by: caller.tenant))
    let job = Job(
      kind: .waveform, recording: recording.id, createdAt: catalog.time,
      expectedBytes: ExpectedBytes.made(of: recording.format, recording.mediaFacts, bytes: recording.bytes ?? 0)
        - (recording.workingBytes ?? 0), client: client.key)
    let queued = try await context.work.run { () throws(StorageError) in
      // Of several simultaneous requests, only one rebuilds it.
      try catalog.update(recording.id, if: { $0.waveformState == .failed }, inserting: job, within: stored) { source in
        (source.waveformState, source.waveformJob, source.waveformKey) = (.queued, job.id, nil)
      }
    }
    guard queued != nil else {
      throw ServiceError.waveformIsNotFailed(
        recording.id, try await context.recording(parameters, caller).waveformState)
    }
    context.runner.submit(job, source: recording, room: room)
    return .changed(try JSONDocument(context.document(job)), .accepted, location: "/v1/jobs/\(job.id)")
  }
}

private enum ListDirection: String, CaseIterable {
  case asc, desc
}

extension RecordingPlace {
  /// The place in a URL: the ID, and in hexadecimal what the recording is sorted by, if that is something else.
  fileprivate var cursor: String { id.text + (key.map { Hexadecimal.text(Array($0.utf8)) } ?? "") }

  fileprivate init?(cursor: String) {
    let idLength = 36
    guard let id = RecordingID(String(cursor.prefix(idLength))),
      let rest = Hexadecimal.bytes(String(cursor.dropFirst(idLength)))
    else { return nil }
    // A NUL is in no catalog.
    let key = String(decoding: rest, as: UTF8.self).replacing("\0", with: "\u{FFFD}")
    self.init(id, key: key.isEmpty ? nil : key)
  }
}
