import Glibc
import HTTP
import Jobs
import Labels
import Storage
import Terms
import Workers

/// `GET …/audio` and `…/video`: a recording's bytes, with range support so that a browser's player can seek.
struct AudioFiles: Sendable {
  let context: Context

  @Sendable func read(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) -> HTTPAnswer {
    reading(request, parameters, caller, isVideo: false) { try await read(request, parameters, caller, $0) }
  }

  /// `GET …/video`: the file if it has pictures, with a video's media type.
  @Sendable func video(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) -> HTTPAnswer {
    reading(request, parameters, caller, isVideo: true) { try await video(request, parameters, caller, $0) }
  }

  /// Where a file is kept open, and the version of its recording from before the row was read.
  private typealias Place = (key: OpenAudio.Key, version: UInt64)

  /// Responds with the file if it is open and asked for as it is, otherwise with what `read` returns.
  private func reading(
    _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller, isVideo: Bool,
    _ read: @escaping @Sendable (Place?) async throws -> HTTPResponse
  ) -> HTTPAnswer {
    let query = request.target.query
    guard let open = context.openAudio, query.isEmpty || query.count == 1 && query[0].name == "token",
      let id = RecordingID(parameters["id"])
    else { return .later { try await read(nil) } }
    let key = OpenAudio.Key(recording: id, tenant: caller.tenant, isVideo: isVideo)
    if let whole = open[key] { return .now(HTTPResponse(whole, for: request)) }
    return .later { try await read((key, open.version(key))) }
  }

  private func read(
    _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller, _ place: Place?
  ) async throws -> HTTPResponse {
    let query = try QueryParameters(request, known: ["download", "format", "start", "end", "labels"])
    let isDownload = try query.flag("download")
    let format: Conversions.Format? = try query.choice("format")
    let asked = try FramePart.Asked(query)
    let recording = try await context.recording(parameters, caller)
    let labels = query.string("labels")
    if labels != nil, format ?? .wav != .wav || format == nil && asked == nil {
      throw query.invalid("format", query.string("format") ?? "", .oneOf(["wav"]))
    }
    if asked != nil || labels != nil {
      let part = PartRequest(asked: asked ?? .init(), format: format ?? .wav, isDownload: isDownload, labels: labels)
      return try await self.part(part, of: recording, request, caller)
    }
    guard let format else {
      return try await answer(request, recording, isDownload, contentType: recording.mediaType, caller, place)
    }
    return try await converted(recording, to: format, isDownload, request, caller)
  }

  private func converted(
    _ recording: Recording, to format: Conversions.Format, _ isDownload: Bool, _ request: HTTPRequest, _ caller: Caller
  ) async throws -> HTTPResponse {
    let conversions = Conversions(context: context)
    func representation(_ conversion: Conversion, _ made: AudioFormat) -> Representation {
      var fields = HTTPFields.sandboxed
      if isDownload {
        fields["Content-Disposition"] = Self.attachment(recording.name, extension: made.fileExtension)
      }
      return Representation(
        body: .empty, contentType: made.mediaType, etag: "\"c1-\(conversion.sha256)\"",
        cacheControl: context.immutable, fields: fields, acceptsRanges: true)
    }
    // Without fetching the file first.
    if context.media.bucket != nil, request.mayNeedNoContent || context.redirects != nil && request.mayBeRedirected,
      let (conversion, made) = try await conversions.known(recording, as: format, caller)
    {
      let whole = representation(conversion, made)
      if let response = withoutContent(whole, bytes: conversion.bytes, for: request) { return response }
      if let response = try await redirect(whole, of: conversion.key, bytes: conversion.bytes, for: request, caller) {
        return response
      }
    }
    guard let made = try await conversions.file(of: recording, as: format, for: caller) else {
      return try await answer(request, recording, isDownload, contentType: recording.mediaType, caller)
    }
    var whole = representation(made.conversion, made.format)
    whole.body = .file(made.content)
    return HTTPResponse(whole, for: request)
  }

  /// What a request asks for that isn't a file as it is stored.
  private struct PartRequest {
    let asked: FramePart.Asked
    let format: Conversions.Format
    let isDownload: Bool
    /// The track of labels to write into it.
    let labels: String?
  }

  /// Returns the labels of a track in a part as chunks of a WAV file.
  private func cuePoints(
    _ track: LabelTrack, _ part: FramePart, _ sampleRate: Int, _ caller: Caller
  ) async throws -> (bytes: [UInt8], version: String, leftOut: String) {
    let rate = Double(sampleRate)
    return try await context.drawings.run(for: caller.client) {
      guard let found = try caller.catalog.labels(of: track.id) else {
        throw ServiceError.noSuchLabelTrack(track.id.text)
      }
      let start = MediaTime(seconds: Double(part.frames.lowerBound) / rate) ?? .zero
      let end = MediaTime(seconds: Double(part.frames.upperBound) / rate) ?? .limit
      let labels = try found.chunks.flatMap { try LabelPieces.labels($0.labels) }.compactMap {
        $0.cut(from: start, to: end)
      }
      let (bytes, leftOut) = CuePoints.chunks(labels, sampleRate: sampleRate)
      let version = found.track.etag.filter { $0 != "\"" }
      return (bytes, version, leftOut.map(\.rawValue).joined(separator: ", "))
    }
  }

  /// Returns a part of a recording. Decides everything that needs no decoding first, so that HEAD and conditions cost
  /// nothing.
  private func part(
    _ asked: PartRequest, of recording: Recording, _ request: HTTPRequest, _ caller: Caller
  ) async throws -> HTTPResponse {
    let format = asked.format
    guard format == .wav || caller.mayConvert else { throw AccessError.noConversion }
    let recording = try await context.readWhole(recording, until: context.waitDeadline, caller)
    guard let source = recording.audioFormat, let sha256 = recording.sha256 else {
      throw ServiceError.notReady(recording.id)
    }
    let part = try FramePart(asked.asked, of: recording.format)
    let target = try Conversions.target(source, format)
    var fields = HTTPFields.sandboxed
    if asked.isDownload {
      let name = RecordingName.derived(
        from: recording.name, label: part.label(sampleRate: source.sampleRate), extension: target.fileExtension)
      fields["Content-Disposition"] = Self.attachment(name, extension: target.fileExtension)
    }
    var tag = "p1-\(sha256)-\(part.frames.lowerBound)-\(part.frames.upperBound)-\(format.rawValue)"
    var (chunks, cacheControl) = ([UInt8](), context.immutable)
    if let labels = asked.labels {
      let track = try await LabelTracks(context: context).track(labels, of: recording, caller)
      let cues = try await cuePoints(track, part, source.sampleRate, caller)
      (chunks, cacheControl, tag) = (cues.bytes, "no-cache", "\(tag)-\(cues.version)")
      if !cues.leftOut.isEmpty { fields["Stillwave-Left-Out"] = cues.leftOut }
    }
    var representation = Representation(
      body: .empty, contentType: target.mediaType, etag: "\"\(tag)\"", cacheControl: cacheControl,
      fields: fields, acceptsRanges: true)
    if let spared = HTTPResponse(sparing: representation, for: request) { return spared }
    let local = try await context.soundFile(of: recording, for: caller.client)
    let client = caller.client
    let room = try context.parts.reserve(for: client)
    if format == .wav {
      let sound = try await WavePart(
        of: local, part, adding: chunks, of: recording.id, room: room, for: client, context)
      representation.body = sound.body(0..<sound.length)
      representation.part = { sound.body($0) }
    } else if request.method == .head {
      representation.body = .stream(length: nil) { nil }
    } else {
      let sound = try await EncodedPart(
        part, of: recording, in: local, as: format, room: room, for: client, context)
      if request.fields.contains("Range") {
        let length = try await sound.length()
        representation.body = sound.body(0..<length)
        representation.part = { sound.body($0) }
      } else {
        representation.body = try await sound.body()
      }
    }
    return HTTPResponse(representation, for: request)
  }

  private func video(
    _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller, _ place: Place?
  ) async throws -> HTTPResponse {
    let query = try QueryParameters(request, known: ["download"])
    let isDownload = try query.flag("download")
    let recording = try await context.recording(parameters, caller)
    guard let facts = recording.mediaFacts, facts.video != nil else { throw ServiceError.noVideo(recording.id) }
    return try await answer(request, recording, isDownload, contentType: facts.videoMediaType, caller, place)
  }

  /// `GET …/cover`: the picture inside the file, as it is there.
  @Sendable func cover(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let recording = try await context.recording(parameters, caller)
    guard let cover = recording.tags?.cover else { throw ServiceError.noCover(recording.id) }
    guard let key = recording.audioKey, let sha256 = recording.sha256 else {
      throw ServiceError.notReady(recording.id)
    }
    var representation = Representation(
      body: .empty, contentType: cover.type, etag: "\"i1-\(sha256)\"", cacheControl: context.immutable,
      fields: .sandboxed)
    if let spared = HTTPResponse(sparing: representation, for: request) { return spared }
    let (objects, range) = (context.objects, cover.offset..<cover.offset + cover.bytes)
    guard let bytes = try await context.storeWork.run({ try objects.read(key, range) }) else {
      try await context.checkAudio(of: recording)
      throw ServiceError.audioDamaged(recording.id)
    }
    representation.body = .bytes(bytes)
    return HTTPResponse(representation, for: request)
  }

  private func answer(
    _ request: HTTPRequest, _ recording: Recording, _ isDownload: Bool, contentType: String, _ caller: Caller,
    _ place: Place? = nil
  ) async throws -> HTTPResponse {
    guard let key = recording.audioKey, let sha256 = recording.sha256 else {
      throw ServiceError.notReady(recording.id)
    }
    var fields = HTTPFields.sandboxed
    if isDownload {
      fields["Content-Disposition"] = Self.attachment(recording.name, extension: recording.fileExtension ?? "wav")
    }
    var representation = Representation(
      body: .empty, contentType: contentType, etag: "\"a1-\(sha256)\"", cacheControl: context.immutable, fields: fields,
      acceptsRanges: true)
    let isLost = recording.warnings.contains { [MissingFiles.code, MissingFiles.damagedCode].contains($0.code) }
    if !isLost, let response = withoutContent(representation, bytes: recording.bytes, for: request) { return response }
    if let response = try await redirect(representation, of: key, bytes: recording.bytes, for: request, caller) {
      return response
    }
    if let fetched = try await fetched(recording, key, for: caller.client) {
      representation.body = fetched.body(0..<fetched.length)
      representation.part = { fetched.body($0) }
    } else {
      let file = try await content(of: recording, key, for: caller.client)
      representation.body = .file(file)
      if let place { context.openAudio?.keep(file, representation, for: place.key, version: place.version) }
    }
    return HTTPResponse(representation, for: request)
  }

  /// Returns the response to HEAD, or to a request whose conditions make the content unnecessary: the row knows all of
  /// it, so the store isn't asked, and an object that is gone since is found by GET. Returns nil for other requests,
  /// and if a look at a folder shows more.
  private func withoutContent(
    _ representation: Representation, bytes: Int64?, for request: HTTPRequest
  ) -> HTTPResponse? {
    guard context.media.bucket != nil, request.mayNeedNoContent else { return nil }
    if let spared = HTTPResponse(sparing: representation, for: request) { return spared }
    guard request.method == .head, let bytes else { return nil }
    var representation = representation
    representation.body = .stream(length: bytes) { nil }
    return HTTPResponse(representation, for: request)
  }

  /// Longer files are sent while they are fetched.
  private static let bytesFetchedAtOnce: Int64 = 4 << 20

  /// Returns a long file that is in a bucket and not here; nil for others. Throws if it is gone or another one.
  private func fetched(
    _ recording: Recording, _ key: ObjectKey, for client: Client
  ) async throws -> FetchedObject? {
    let objects = context.objects
    guard context.media.bucket != nil, let bytes = recording.bytes, bytes > Self.bytesFetchedAtOnce,
      let sha256 = recording.sha256, objects.fileAtHand(key) == nil
    else { return nil }
    // Compares the length and the SHA-256 that the store has with those of the row.
    if try await context.storeWork.run({ try objects.read(key, 0..<1) }) == nil {
      try await context.checkAudio(of: recording)
    }
    return FetchedObject(
      key: key, length: bytes, sha256: sha256, objects: objects, work: context.storeWork, client: client)
  }

  private func content(
    of recording: Recording, _ key: ObjectKey, for client: Client
  ) async throws -> FileContent {
    let objects = context.objects
    do {
      let content = try await context.storeWork.run(as: .transfer(client)) { () throws -> FileContent? in
        let length = recording.bytes
        func opened() throws -> FileContent? {
          let content = try objects.localFile(key).withPath(FileContent.init(path:))
          return content.length == length ? content : nil
        }
        do { if let content = try opened() { return content } } catch let error as StorageError { throw error } catch {
          // The second time decides.
        }
        // Perhaps only this machine's copy is damaged.
        _ = objects.discardCopy(of: key)
        return try opened()
      }
      if let content { return content }
    } catch FileContentError.io(_, let path, let number) where ![ENOENT, ENOTDIR, ELOOP, EIO].contains(number) {
      throw FileContentError.io(operation: "open", path: path, errno: number)
    } catch let error as StorageError {
      throw error
    } catch {
      // `checkAudio` below finds the cause.
    }
    try await context.checkAudio(of: recording)
    throw ServiceError.audioDamaged(recording.id)
  }

  /// RFC 6266: an ASCII fallback for old clients and the real name in UTF-8 (RFC 8187) for all others. The fallback has
  /// no “%”, which some clients decode (RFC 6266, Appendix D).
  private static func attachment(_ name: String, extension ending: String) -> String {
    let name = RecordingName.file(name, extension: ending)
    let plain = name.utf8.map { byte in
      (0x20...0x7E).contains(byte) && !"\"\\%".utf8.contains(byte) ? byte : UInt8(ascii: "_")
    }
    return "attachment; filename=\"\(String(decoding: plain, as: UTF8.self))\"; "
      + "filename*=UTF-8''\(URIEncoding.component(name))"
  }
}

extension HTTPFields {
  /// For bytes that a client made or named: a browser that opens them as a page of its own runs no scripts in it, and
  /// gives it no access to the service.
  static let sandboxed: HTTPFields = ["Content-Security-Policy": "sandbox"]
}

extension HTTPRequest {
  /// Whether the response may have no content: to HEAD, or because of a condition.
  fileprivate var mayNeedNoContent: Bool {
    method == .head
      || ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since"].contains(where: fields.contains)
  }
}
