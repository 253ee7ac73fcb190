import Denoise
import HTTP
import Jobs
import Storage
import Terms
import Workers

/// Noise profiles that are kept: learned from a recording or read from a file, for use with any recording.
struct NoiseProfiles: Sendable {
  let context: Context

  /// Maximum number of profiles. Each takes 20 KB of the catalog for two channels at 44.1 kHz.
  static let limit = 1000
  /// The name of a profile that the client doesn't name. It isn't the recording's, which would outlive it.
  private static let defaultName = "Noise profile"
  /// Maximum length of a list's profiles, in bytes; a page may have fewer than it was asked for.
  private static let pageBytes = 4 << 20

  private static let known: JSONMembers.Known = [
    "recording": [], "noise": ["start", "end", "regions", "quantile"], "name": [], "frequencies": [], "power_db": [],
    "steadiness": [], "sample_rate": [], "channels": [], "id": [], "created_at": [], "changed_at": [],
  ]

  /// What a client wants kept.
  private enum Wish: Sendable {
    case learned(from: String, NoiseSource?, name: String?)
    case file(KeptProfile)
  }

  @Sendable func create(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    try await context.admission.checkDisk(for: Int64(NoiseProfileFile.byteLimit))
    let client = caller.client
    let wish = try await context.longBodies.intake(request, for: client, name: "waiting_noise_profiles") {
      let bytes = try await JSONMembers.bytes(of: request, upTo: NoiseProfileFile.byteLimit)
      let wish = { @Sendable [catalog = caller.catalog] in
        try Self.wish(JSONMembers(bytes, known: Self.known), at: catalog.time)
      }
      // Some hundred thousand numbers take a second.
      return bytes.count <= JSONMembers.byteLimit ? try wish() : try await context.drawings.run(for: client, wish)
    }
    let kept: KeptProfile
    switch wish {
    case .file(let profile): kept = profile
    case .learned(let recording, let noise, let name): kept = try await learn(from: recording, noise, name, caller)
    }
    let (catalog, stored) = (caller.catalog, context.accounts.stored(by: caller.tenant))
    try await context.work.run { () throws(StorageError) in
      try catalog.insert(kept, limit: Self.limit, within: stored)
    }
    return try changed(kept, .created)
  }

  @Sendable func list(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    let query = try QueryParameters(request, known: ["limit", "cursor"])
    let limit = try query.integer("limit", in: 1...1000) ?? 50
    let before = try query.string("cursor").map { text in
      guard let id = KeptProfileID(text) else { throw query.invalid("cursor", text, .cursor) }
      return id
    }
    let catalog = caller.catalog
    let (document, next) = try await context.work.run {
      let page = try catalog.noiseProfiles(limit: limit, before: before, byteLimit: Self.pageBytes)
      let hasMore = try page.last.map { try !catalog.noiseProfiles(limit: 1, before: $0.id).isEmpty } ?? false
      let next = hasMore ? page.last?.id.text : nil
      let profiles = try page.map { try $0.json() }.joined(separator: [UInt8(ascii: ",")])
      let cursor = next.map { "\"\($0)\"" } ?? "null"
      return (
        JSONDocument(bytes: Array("{\"next_cursor\":\(cursor),\"profiles\":[".utf8) + profiles + Array("]}".utf8)), next
      )
    }
    return .page(document, next: next, for: request)
  }

  @Sendable func read(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let profile = try await profile(parameters, caller)
    return HTTPResponse(
      Representation(
        body: .bytes(try profile.json()), contentType: "application/json", etag: profile.etag,
        cacheControl: "no-cache"), for: request)
  }

  @Sendable func rename(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let profile = try await profile(parameters, caller)
    let members = try await JSONMembers(bodyOf: request, known: ["name": []])
    guard let name = try members.recordingName() else { throw members.invalid("name", .given) }
    let catalog = caller.catalog
    let renamed = try await context.work.run { () throws(StorageError) in
      try catalog.renameNoiseProfile(profile.id, to: name) { request.mayChange(etag: $0.etag) }
    }
    guard let renamed else { throw ServiceError.noSuchNoiseProfile(profile.id.text) }
    return try changed(renamed, .ok)
  }

  @Sendable func delete(_ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller) async throws
    -> HTTPResponse
  {
    try QueryParameters.checkNone(request)
    let profile = try await profile(parameters, caller)
    let (catalog, blobs) = (caller.catalog, context.blobs)
    let isDeleted = try await context.work.run { () throws(StorageError) in
      try blobs.makingRoom { () throws(StorageError) in
        try catalog.deleteNoiseProfile(profile.id) { request.mayChange(etag: $0.etag) }
      }
    }
    guard isDeleted else { throw ServiceError.noSuchNoiseProfile(profile.id.text) }
    return HTTPResponse(.noContent)
  }

  // MARK: Parts

  /// A body with numbers is a profile's file, whose ID, times and recording don't count; any other says what to learn.
  private static func wish(_ members: JSONMembers, at time: Timestamp) throws -> Wish {
    let name = try members.recordingName()
    let noise = try members.noiseSource(mayBeProfile: false)
    let recording = try members.string("recording")
    let (frequencies, power) = (members.value("frequencies"), members.value("power_db"))
    guard frequencies != nil || power != nil else {
      guard let recording else { throw members.invalid("recording", .recordingID) }
      for member in ["steadiness", "sample_rate", "channels", "id", "created_at", "changed_at"]
      where members.value(member) != nil {
        throw members.invalid(member, .givenWith("power_db"))
      }
      return .learned(from: recording, noise, name: name)
    }
    guard let frequencies = frequencies?.numbers(upTo: NoiseDensity.frequencyCount.upperBound) else {
      throw members.invalid("frequencies", .noiseDensity(.frequencies))
    }
    guard case .array(let channels) = power, NoiseDensity.channelCount.contains(channels.count) else {
      throw members.invalid("power_db", .noiseDensity(.channels))
    }
    let rows = try channels.enumerated().map { index, row in
      guard let numbers = row.numbers(upTo: frequencies.count) else {
        throw members.invalid("power_db", .noiseDensity(.power(channel: index)))
      }
      return numbers
    }
    let steadiness = try members.value("steadiness").map { value in
      guard let numbers = value.numbers(upTo: rows.count) else {
        throw members.invalid("steadiness", .noiseDensity(.steadiness))
      }
      return numbers
    }
    let rate = try members.number("sample_rate", in: 1...1e9).map { Int($0) }
    let file: NoiseProfileFile
    do {
      let density = try NoiseDensity(frequencies: frequencies, powerDB: rows, steadiness: steadiness)
      file = NoiseProfileFile(noise: noise, sampleRate: rate, density: density)
    } catch {
      throw members.invalid(error.member, .noiseDensity(error))
    }
    let profile = try KeptProfile(file, name: name ?? Self.defaultName, of: nil, at: time)
    // Jobs read it as a file, and some numbers are longer when they are written again, such as 1e-5.
    guard profile.spectrum.count <= NoiseProfileFile.byteLimit else {
      throw RequestBodyError.tooLarge(limit: Int64(NoiseProfileFile.byteLimit))
    }
    return .file(profile)
  }

  private func learn(
    from text: String, _ noise: NoiseSource?, _ name: String?, _ caller: Caller
  ) async throws -> KeptProfile {
    guard let id = RecordingID(text), let source = try await recording(id, caller) else {
      throw RequestError.noSuchNoisyRecording(text)
    }
    let sound = try await context.soundFile(of: source, for: caller.client)
    try DenoiseRequests.check(noise, fits: source.format)
    let (scratch, job) = (context.scratch, JobID(at: caller.catalog.time))
    let folder = try await context.work.run { () throws(StorageError) in try scratch.makeWorkFolder(of: job) }
    defer { context.work.start { scratch.disk.removeWorkFolder(of: job) } }
    let output = folder + "/profile.json"
    var work = NoiseProfileWork(noise, name: nil, output: output)
    work.noiseRegions = source.noiseRegions
    try await context.report(of: .noiseProfile(work), on: sound, source, for: caller.client)
    return try await context.work.run {
      // Without the file that the reader reported, there is nothing to parse, which fails like a damaged one.
      let bytes = try scratch.disk.contents(ofWorkFile: output, limit: Int64(NoiseProfileFile.byteLimit)) ?? []
      return try KeptProfile(
        try NoiseProfileFile(bytes), name: name ?? Self.defaultName, of: source.id, at: caller.catalog.time)
    }
  }

  /// Returns the profile with the ID in a path. Throws if there is none.
  private func profile(_ parameters: PathParameters, _ caller: Caller) async throws -> KeptProfile {
    let text = parameters["id"]
    guard let id = KeptProfileID(text), let profile = try await context.noiseProfile(id, caller) else {
      throw ServiceError.noSuchNoiseProfile(text)
    }
    return profile
  }

  private func recording(_ id: RecordingID, _ caller: Caller) async throws -> Recording? {
    let catalog = caller.catalog
    return try await context.work.run { () throws(StorageError) in try catalog.recording(id) }
  }

  private func changed(_ profile: KeptProfile, _ status: HTTPStatus) throws -> HTTPResponse {
    var response = HTTPResponse(
      status, fields: ["Content-Type": "application/json", "ETag": profile.etag, "Cache-Control": "no-cache"],
      body: .bytes(try profile.json()))
    if status == .created { response.fields["Location"] = "/v1/noise-profiles/\(profile.id)" }
    return response
  }
}

extension Context {
  /// Returns the noise profile that a request names as its noise; nil if its noise is something else. Throws if the
  /// caller has no such profile.
  func noiseProfile(
    of noise: NoiseSource?, named parameter: String = "noise.profile", _ caller: Caller
  ) async throws -> KeptProfile? {
    guard case .profile(let text) = noise else { return nil }
    guard let id = KeptProfileID(text), let profile = try await noiseProfile(id, caller) else {
      throw RequestError.noSuchNoiseProfile(text, parameter: parameter)
    }
    return profile
  }

  fileprivate func noiseProfile(_ id: KeptProfileID, _ caller: Caller) async throws -> KeptProfile? {
    let catalog = caller.catalog
    return try await work.run { () throws(StorageError) in try catalog.noiseProfile(id) }
  }
}

/// A noise profile as the API shows it, without its numbers.
private struct NoiseProfileHead: Encodable {
  let id, name, createdAt, changedAt: String
  @Nullable var recording: String?
  @Nullable var noise: NoiseSource?
  @Nullable var sampleRate: Int?
  let channels: Int
}

extension KeptProfile {
  private struct Spectrum: Encodable {
    let frequencies: [Double]
    let powerDb: [[Double]]
    let steadiness: [Double]
  }

  fileprivate init(_ file: NoiseProfileFile, name: String, of recording: RecordingID?, at time: Timestamp) throws {
    let density = file.density
    self.init(
      name: name, recording: recording, noise: file.noise.map { RowJSON.text($0) }, sampleRate: file.sampleRate,
      channels: density.powerDB.count,
      spectrum: try JSONDocument.encoded(
        Spectrum(
          frequencies: density.frequencies, powerDb: density.powerDB, steadiness: density.steadiness)), at: time)
  }

  /// A strong tag, which changes with each change. Contains the time, because a restored backup counts changes from an
  /// earlier number.
  fileprivate var etag: String { "\"\(String(changedAt.milliseconds, radix: 36))-\(version)\"" }

  /// The profile as a JSON object. Its numbers aren't encoded again, which would take a millisecond per thousand.
  fileprivate func json() throws -> [UInt8] {
    let head = NoiseProfileHead(
      id: id.text, name: name, createdAt: createdAt.rfc3339, changedAt: changedAt.rfc3339, recording: recording?.text,
      noise: RowJSON.value(NoiseSource.self, from: noise), sampleRate: sampleRate, channels: channels)
    var json = try JSONDocument.encoded(head)
    json[json.count - 1] = UInt8(ascii: ",")
    json += spectrum.dropFirst()
    return json
  }
}

extension NoiseDensity.Fault {
  /// The member that it is about.
  fileprivate var member: String {
    switch self {
    case .frequencies: "frequencies"
    case .channels, .power, .silent: "power_db"
    case .steadiness: "steadiness"
    }
  }
}

extension JSONValue {
  /// Returns the numbers of an array; nil if it isn't one, has more than `limit` elements, or has others.
  fileprivate func numbers(upTo limit: Int) -> [Double]? {
    guard case .array(let elements) = self, elements.count <= limit else { return nil }
    var numbers: [Double] = []
    numbers.reserveCapacity(elements.count)
    for element in elements {
      guard case .number(let number) = element else { return nil }
      numbers.append(number)
    }
    return numbers
  }
}
