import HTTP
import Jobs
import Labels
import Storage

/// Timed text of recordings: tracks of labels in the formats of `Labels`.
struct LabelTracks: Sendable {
  let context: Context

  // MARK: Tracks

  @Sendable func list(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let recording = try await context.recording(parameters, caller)
    let context = context
    return try await context.work.run {
      let owner = try caller.catalog.labelOwner(of: recording) ?? recording.id
      let tracks = try caller.catalog.labelTracks(of: owner).map { LabelTrackDocument($0, of: recording) }
      let list = LabelTrackList(tracks: tracks, inherited: owner != recording.id)
      return .changing(try JSONDocument(list), for: request)
    }
  }

  @Sendable func create(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    let query = try QueryParameters(request, known: ["name", "kind", "language", "format", "strict"])
    let format = try format(of: request, query)
    let kind: LabelTrack.Kind = try query.choice("kind") ?? .labels
    let name = try query.string("name").map { text in
      guard let name = RecordingName(typed: text) else { throw query.invalid("name", text, .visibleText) }
      return name.text
    }
    let language = try query.string("language").map { text in
      guard LanguageTag.isValid(text) else { throw query.invalid("language", text, .languageTag) }
      return text
    }
    let recording = try await context.recording(parameters, caller)
    let (catalog, stored) = (caller.catalog, context.accounts.stored(by: caller.tenant))
    let isStrict = try query.flag("strict")
    let (track, answer) = try await parsing(request, caller, format, recording, isStrict: isStrict) { file in
      let named = file.title.flatMap { RecordingName(typed: $0)?.text } ?? LabelTrack.name(of: kind)
      var track = LabelTrack(
        of: recording.id, name: name ?? named, kind: kind,
        language: language ?? file.language.flatMap { LanguageTag.isValid($0) ? $0 : nil }, source: .upload,
        at: catalog.time)
      let chunks = track.chunks(of: file.labels)
      try catalog.insert(track, chunks, limit: LabelTrack.limit, within: stored)
      return (track, (LeftOutDocument(file.leftOut), file.encoding))
    }
    return try changed(track, of: recording, .created, answer)
  }

  @Sendable func change(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let (recording, track) = try await ownTrack(parameters, caller)
    try request.requireMatch()
    let (context, client) = (context, caller.client)
    let updated = try await context.longBodies.intake(request, for: client, name: "waiting_labels") {
      let bytes = try await JSONMembers.bytes(of: request, upTo: Self.editBytes)
      return try await context.labels.run(for: client) {
        try Self.change(track, with: bytes, for: request, caller, within: context.accounts.stored(by: caller.tenant))
      }
    }
    return try changed(updated, of: recording, .ok)
  }

  /// Changes a track as a request's JSON says.
  private static func change(
    _ track: LabelTrack, with bytes: [UInt8], for request: HTTPRequest, _ caller: Caller, within stored: StoredLimits?
  ) throws -> LabelTrack {
    let edit = try LabelEdit(parsing: bytes)
    let members = try JSONMembers(bytes, known: changeable)
    let name = try members.recordingName()
    let kind: LabelTrack.Kind? = try members.choice("kind")
    let language = try members.string("language", upTo: 35)
    if let language, !LanguageTag.isValid(language) { throw members.invalid("language", .languageTag) }
    let forgetsLanguage = members.isNull("language")
    let editsLabels = members.value("set") != nil || members.value("remove") != nil
    guard name != nil || kind != nil || language != nil || forgetsLanguage || editsLabels else {
      throw members.invalid("name", .given)
    }
    let catalog = caller.catalog
    guard let read = try catalog.labels(of: track.id, to: edit == LabelEdit() ? 0 : .max) else {
      throw ServiceError.noSuchLabelTrack(track.id.text)
    }
    guard request.mayChange(etag: read.track.etag) else { throw StorageError.changedMeanwhile }
    var summary = read.track
    var chunks = ChangedChunks.none
    if edit != LabelEdit() {
      chunks = try summary.apply(edit, to: read.chunks) { number in
        // If the track is another one by now, it isn't changed.
        try catalog.labels(after: number - 1, of: track.id)?.lines ?? []
      }
    }
    let updated = try catalog.update(track.id, if: { $0.etag == read.track.etag }, chunks, within: stored) {
      [summary] track in
      track.summarize(as: summary)
      track.name = name ?? track.name
      track.kind = kind ?? track.kind
      track.language = forgetsLanguage ? nil : language ?? track.language
    }
    guard let updated else { throw ServiceError.noSuchLabelTrack(track.id.text) }
    return updated
  }

  /// Maximum size of changes of single labels, in bytes; more is sent with PUT.
  private static let editBytes = 1 << 20
  private static let changeable: JSONMembers.Known = ["name": [], "kind": [], "language": [], "set": [], "remove": []]

  @Sendable func delete(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let (_, track) = try await ownTrack(parameters, caller)
    try request.requireMatch()
    let (catalog, blobs) = (caller.catalog, context.blobs)
    let isDeleted = try await context.work.run { () throws(StorageError) in
      try blobs.makingRoom { () throws(StorageError) in
        try catalog.deleteLabelTrack(track.id) { request.mayChange(etag: $0.etag) }
      }
    }
    guard isDeleted else { throw ServiceError.noSuchLabelTrack(track.id.text) }
    return HTTPResponse(.noContent)
  }

  // MARK: Labels

  /// Reads labels of a track in the format that the query or the field Accept asks for.
  @Sendable func read(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    let query = try QueryParameters(request, known: ["start", "end", "q", "format"])
    let format = try query.format("format", among: LabelFormat.writable) ?? acceptedFormat(request)
    let window = try window(query)
    if let id = LabelTrackID(parameters["track"]), let owner = RecordingID(parameters["id"]),
      let response = try await response(id, of: owner, window, format, request, caller)
    {
      return response
    }
    // It isn't the recording's own track, but may be inherited.
    let recording = try await context.recording(parameters, caller)
    let track = try await track(parameters["track"], of: recording, caller)
    guard let response = try await response(track.id, of: track.recording, window, format, request, caller) else {
      throw ServiceError.noSuchLabelTrack(track.id.text)
    }
    return response
  }

  /// Returns the response with a window of a recording's own track; nil if it has no such track. A track is deleted
  /// together with its recording, so one transaction finds everything.
  private func response(
    _ id: LabelTrackID, of owner: RecordingID, _ window: LabelWindow, _ format: LabelFormat, _ request: HTTPRequest,
    _ caller: Caller
  ) async throws -> HTTPResponse? {
    try await context.labels.run(for: caller.client) { () throws -> HTTPResponse? in
      var spared: HTTPResponse?
      let found = try caller.catalog.labels(of: id, from: window.start, to: window.end, containing: window.text) {
        track in
        guard track.recording == owner else { return false }
        spared = HTTPResponse(sparing: representation(.empty, track, format), for: request)
        return spared == nil
      }
      guard let found, found.track.recording == owner else { return nil }
      if let spared { return spared }
      let content = try Self.content(found.chunks, window, format)
      let whole = representation(.bytes(content.bytes), found.track, format, leftOut: content.leftOut)
      return HTTPResponse(whole, for: request).codedHere(for: request)
    }
  }

  @Sendable func replace(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    let query = try QueryParameters(request, known: ["format", "strict"])
    let format = try format(of: request, query)
    let (recording, track) = try await ownTrack(parameters, caller)
    try request.requireMatch()
    guard request.mayChange(etag: track.etag) else { throw StorageError.changedMeanwhile }
    let (catalog, stored) = (caller.catalog, context.accounts.stored(by: caller.tenant))
    let isStrict = try query.flag("strict")
    let (updated, answer) = try await parsing(request, caller, format, recording, isStrict: isStrict) { file in
      try track.checkIDs(file.labels)
      var summary = track
      let chunks = summary.chunks(of: file.labels)
      let updated = try catalog.update(
        track.id, if: { $0.etag == track.etag }, .all(chunks), within: stored
      ) { [summary] in $0.summarize(as: summary) }
      return (updated, (LeftOutDocument(file.leftOut), file.encoding))
    }
    guard let updated else { throw ServiceError.noSuchLabelTrack(track.id.text) }
    return try changed(updated, of: recording, .ok, answer)
  }

  // MARK: Parts

  /// Returns the track with this ID, the recording's own or an inherited one. Throws if it has no such track.
  func track(_ text: String, of recording: Recording, _ caller: Caller) async throws -> LabelTrack {
    guard let id = LabelTrackID(text) else { throw ServiceError.noSuchLabelTrack(text) }
    let context = context
    return try await context.work.run {
      guard let track = try caller.catalog.labelTrack(id) else { throw ServiceError.noSuchLabelTrack(text) }
      if track.recording == recording.id { return track }
      guard try track.recording == caller.catalog.labelOwner(of: recording) else {
        throw ServiceError.noSuchLabelTrack(text)
      }
      return track
    }
  }

  /// Returns the recording with the ID in a path and its track. Throws if the track is another recording's.
  private func ownTrack(_ parameters: PathParameters, _ caller: Caller) async throws -> (Recording, LabelTrack) {
    let recording = try await context.recording(parameters, caller)
    let track = try await track(parameters["track"], of: recording, caller)
    guard track.recording == recording.id else { throw ServiceError.labelTrackIsInherited(track.id, track.recording) }
    return (recording, track)
  }

  /// Reads and parses the body when it is the client's turn, and passes it to `body`, which may block.
  private func parsing<R: Sendable>(
    _ request: HTTPRequest, _ caller: Caller, _ format: LabelFormat?, _ recording: Recording, isStrict: Bool,
    _ body: @escaping @Sendable (LabelFile) throws -> R
  ) async throws -> R {
    let (context, client) = (context, caller.client)
    let duration = recording.format.duration.flatMap { MediaTime(seconds: $0) }
    let charset = Self.contentType(of: request)?.parameters.first { $0.name == "charset" }?.value
    try request.requireNoCoding()
    try await context.admission.checkDisk(for: request.body.declaredLength ?? Int64(LabelLimits.bytes))
    return try await context.longBodies.intake(request, for: client, name: "waiting_labels") {
      let bytes = try await request.body.collect(upTo: LabelLimits.bytes)
      return try await context.labels.run(for: client) {
        try body(
          LabelFile(parsing: bytes, as: format, charset: charset, duration: duration, isStrict: isStrict))
      }
    }
  }

  private func changed(
    _ track: LabelTrack, of recording: Recording, _ status: HTTPStatus,
    _ file: (leftOut: LeftOutDocument?, encoding: String)? = nil
  ) throws -> HTTPResponse {
    var document = LabelTrackDocument(track, of: recording)
    document.leftOut = file?.leftOut
    var response = try HTTPResponse.json(
      status, document, fields: ["ETag": track.etag, "Cache-Control": "no-cache"])
    if let file { response.fields["Stillwave-Encoding"] = file.encoding }
    if status == .created { response.fields["Location"] = "/v1/recordings/\(recording.id)/labels/\(track.id)" }
    return response
  }

  private func representation(
    _ body: ResponseBody, _ track: LabelTrack, _ format: LabelFormat, leftOut: [LeftOut] = []
  ) -> Representation {
    var fields: HTTPFields = ["Vary": "Accept"]
    if !leftOut.isEmpty { fields["Stillwave-Left-Out"] = leftOut.map(\.rawValue).joined(separator: ", ") }
    return Representation(
      body: body, contentType: format.mediaType, etag: track.etag, cacheControl: "no-cache", fields: fields)
  }

  private static func content(
    _ chunks: [FoundLabels], _ window: LabelWindow, _ format: LabelFormat
  ) throws -> (bytes: [UInt8], leftOut: [LeftOut]) {
    if format == .json { return (LabelPieces.document(try window.pieces(chunks)), []) }
    let written = WrittenLabels(try window.labels(chunks), as: format)
    return (written.bytes, written.leftOut)
  }

  /// Returns the format of the body: the one that the query names, or else the one that the media type decides.
  private func format(of request: HTTPRequest, _ query: QueryParameters) throws -> LabelFormat? {
    if let format = try query.format("format", among: LabelFormat.readable) { return format }
    return Self.contentType(of: request).flatMap { LabelFormat(deciding: $0.value.lowercased()) }
  }

  private static func contentType(of request: HTTPRequest) -> ParameterizedValue? {
    request.fields["Content-Type"].flatMap(ParameterizedValue.init)
  }

  private func acceptedFormat(_ request: HTTPRequest) throws -> LabelFormat {
    let types = LabelFormat.writable.map(\.mediaType)
    let type = try request.preferredType(among: types)
    return LabelFormat.writable.first { $0.mediaType == type } ?? .json
  }

  private func window(_ query: QueryParameters) throws -> LabelWindow {
    var window = LabelWindow(text: query.string("q"))
    // The time of a search grows with the product of both lengths.
    if let text = window.text, text.utf8.count > 256 { throw query.invalid("q", text, .text(byteLimit: 256)) }
    let start = try query.number("start") ?? 0
    guard let first = MediaTime(seconds: start) else { throw query.invalid("start", "\(start)", .secondsFromZero) }
    window.start = first.microseconds
    if let end = try query.number("end") {
      guard end > start, let last = MediaTime(seconds: end) else {
        throw query.invalid("end", "\(end)", .afterStart(limit: nil))
      }
      // Labels have whole microseconds.
      window.end = max(last.microseconds, first.microseconds + 1)
    }
    return window
  }
}

extension LabelTrack {
  /// Throws `.invalidMember` if a label has an ID that the track never gave, or another one has it, too.
  fileprivate func checkIDs(_ labels: [Label]) throws {
    var known: Set<String> = []
    for id in labels.lazy.compactMap(\.id) {
      guard hasGiven(id) else { throw RequestError.invalidMember("labels", .labelsOfTrack(unknown: id)) }
      guard known.insert(id).inserted else { throw RequestError.invalidMember("labels", .distinctLabels(repeated: id)) }
    }
  }

  /// Notes what the labels are, as in `other`.
  fileprivate mutating func summarize(as other: LabelTrack) {
    (count, words, start, end, nextLabel) = (other.count, other.words, other.start, other.end, other.nextLabel)
  }
}

extension HTTPRequest {
  /// Throws 428 if the request doesn't say which version it changes.
  fileprivate func requireMatch() throws {
    guard fields.contains("If-Match") else { throw RequestError.missingIfMatch }
  }
}

extension QueryParameters {
  fileprivate func format(_ name: String, among formats: [LabelFormat]) throws -> LabelFormat? {
    guard let text = string(name) else { return nil }
    guard let format = LabelFormat(rawValue: text), formats.contains(format) else {
      throw invalid(name, text, .oneOf(formats.map(\.rawValue)))
    }
    return format
  }
}
