import Foundation
import PresentRows
import Storage
import Synchronization
import Testing

@testable import AudioService
@testable import HTTP
@testable import Jobs

/// A body without a length that never ends, in pieces of 30 bytes.
private final class EndlessBody: BodySource {
  let pieces = Atomic(0)

  func readBody() async throws(RequestBodyError) -> [UInt8]? {
    pieces.wrappingAdd(1, ordering: .relaxed)
    return [UInt8](repeating: 82, count: 30)
  }

  func start(_ reader: @escaping @Sendable () async -> Void) { Task(operation: reader) }
}

@Suite struct TenantLimitTests {
  /// `early`: whether the waveform is there with the recording, as that of a short upload.
  private func bench(
    _ limits: [String: Double], script: String = "finish", early: Bool = false
  ) throws -> KeyedBench {
    try KeyedBench(KeyedBench.lines(limits: limits), script: script) { $0.takesInShortUploads = early }
  }

  private func says(_ code: String, _ status: Int, _ response: HTTPResponse) async throws {
    let text = String(decoding: try await response.body.collect(), as: UTF8.self)
    #expect(response.status.code == status && text.contains("\"code\":\"\(code)\""), "\(text)")
    #expect(response.fields["Retry-After"] != nil)
    let name = code.dropFirst("limit_".count)
    #expect(response.fields["RateLimit-Policy"]?.hasPrefix("\"\(name)\";q=") == true)
    #expect(response.fields["RateLimit"]?.hasPrefix("\"\(name)\";r=0;t=") == true)
  }

  @Test("a rate is 0 or at least one request in about a day", arguments: [(0.0, true), (1e-5, true), (1e-19, false)])
  func rates(rate: Double, isValid: Bool) async throws {
    let line = Array(KeyedBench.line("ours", tenant: "ours", ["read"], limits: ["requests_per_second": rate]).utf8)
    guard isValid else {
      #expect(throws: KeyFileError.self) { try KeyFile(parsing: line) }
      return
    }
    let keyed = try bench(["requests_per_second": rate])
    if rate > 0 { #expect(try await keyed.status(.get, "/v1/recordings") == 200) }
    try await says("limit_requests_per_second", 429, try await keyed.respond(.get, "/v1/recordings"))
  }

  @Test func anExpiredKeyHasNoSayInItsTenantsLimits() throws {
    let keyed = try KeyedBench(
      KeyedBench.line("ours", tenant: "ours", ["read"], limits: ["recordings": 1])
        + KeyedBench.line("old", tenant: "ours", ["read"], expires: "2020-01-01T00:00:00Z", limits: ["recordings": 9])
        + KeyedBench.line("new", tenant: "ours", ["read"], expires: "2999-01-01T00:00:00Z", limits: ["recordings": 3]))
    let tenant = try #require(Tenant("ours"))
    #expect(keyed.bench.context.accounts.count(.recordings, of: tenant) == 3)
  }

  @Test func aTenantStoresNoMoreBytesThanItMay() async throws {
    // A recording of four bytes has a waveform of two.
    let keyed = try bench(["stored_bytes": 16], early: true)
    _ = try await keyed.recording()
    try await says("limit_stored_bytes", 413, try await keyed.respond(.post, "/v1/recordings", body: "RIFFRIFFRIFF"))
    // What unfinished uploads have announced counts too.
    let upload: HTTPFields = ["Upload-Length": "8"]
    let made = try await keyed.respond(.post, "/v1/uploads", fields: upload)
    #expect(made.status == .created)
    try await says("limit_stored_bytes", 413, try await keyed.respond(.post, "/v1/uploads", fields: upload))
    try await says("limit_stored_bytes", 413, try await keyed.respond(.post, "/v1/recordings", body: "RIFF"))
    #expect(try await keyed.status(.delete, #require(made.fields["Location"])) == 204)
    let second = try await keyed.recording()
    #expect(try await keyed.status(.post, "/v1/recordings", body: "RIFF") == 413)
    #expect(try await keyed.status(.delete, "/v1/recordings/\(second)") == 204)
    _ = try await keyed.recording()
    // Another tenant has no limit.
    for _ in 0..<3 { _ = try await keyed.recording(key: "theirs") }
    await keyed.bench.runner.stop()
  }

  @Test(arguments: ["direct", "creation", "continuation"])
  func anUploadOfUnknownLengthEndsWhenItHasMoreThanTheTenantMayStore(kind: String) async throws {
    let keyed = try bench(["stored_bytes": 100], early: true)
    let source = EndlessBody()
    var fields: HTTPFields = ["Tus-Resumable": "1.0.0", "Upload-Defer-Length": "1"]
    var path = kind == "direct" ? "/v1/recordings" : "/v1/uploads"
    if kind == "continuation" {
      path = try #require(try await keyed.respond(.post, path, fields: fields).fields["Location"])
      fields = ["Tus-Resumable": "1.0.0", "Upload-Offset": "0"]
    }
    let method = kind == "continuation" ? HTTPMethod.patch : .post
    let target = try RequestTarget(parsing: Array(path.utf8)[...], method: method)
    fields["Authorization"] = "Bearer \(KeyedBench.secrets["ours"] ?? "")"
    if kind != "direct" { fields["Content-Type"] = Tus.contentType }
    let request = HTTPRequest(
      head: RequestHead(method: method, target: target, fields: fields),
      body: RequestBody(declaredLength: nil, source: source), peer: "in-process", id: "endless-upload")
    try await says("limit_stored_bytes", 413, try await keyed.bench.responder.respond(to: request).response)
    #expect(source.pieces.load(ordering: .relaxed) == 4)
    #expect(try keyed.bench.catalog.recordings(limit: 9).isEmpty)
    if kind == "continuation" { #expect(try await keyed.status(.delete, path) == 204) }
    // Nothing of it counts any more.
    #expect(try await keyed.status(.post, "/v1/recordings", body: String(repeating: "R", count: 98)) == 201)
    await keyed.bench.runner.stop()
  }

  @Test func uploadsUnderWayCountAsAnnounced() async throws {
    let table = AnnouncedBytes()
    let (ours, theirs) = (try #require(Tenant("ours")), try #require(Tenant("theirs")))
    let first = table.share(of: ours, limit: (all: 100, left: 60))
    try first.grow(by: 40)
    let refusal = StorageError.limitReached("stored_bytes", limit: 100)
    var second: AnnouncedBytes.Share? = table.share(of: ours, limit: (all: 100, left: 60))
    #expect(throws: refusal) { try second?.grow(by: 21) }
    try second?.grow(by: 20)
    #expect(throws: refusal) { try first.grow(by: 1) }
    #expect(throws: refusal) { try first.grow(by: .max) }
    try table.share(of: theirs, limit: (all: 60, left: 60)).grow(by: 60)
    second?.shrink(by: 15)
    try first.grow(by: 15)
    first.shrink(by: 15)
    second = nil
    try first.grow(by: 20)
    first.end()
    try table.share(of: ours, limit: (all: 60, left: 60)).grow(by: 60)
    try table.share(of: ours, limit: nil).grow(by: .max)
  }

  @Test func whatJobsWillMakeCountsToo() async throws {
    // A result is expected to have the bytes of its part, and a waveform of seven pages.
    let (whole, half) = (4.0 + 7 * 4096, 2.0 + 7 * 4096)
    let keyed = try bench(
      ["stored_bytes": 6 + whole + half], script: "case $command in denoise | trim) exec sleep 1000 ;; esac; finish")
    let id = try await keyed.recording()
    _ = try await keyed.bench.finished(#require(try keyed.bench.catalog.recording(id)?.waveformJob))
    let denoise = try await keyed.respond(.post, "/v1/recordings/\(id)/denoise")
    #expect(denoise.status == .accepted)
    try await says("limit_stored_bytes", 413, try await keyed.respond(.post, "/v1/recordings/\(id)/denoise"))
    let long = String(repeating: "R", count: Int(whole))
    try await says("limit_stored_bytes", 413, try await keyed.respond(.post, "/v1/recordings", body: long))
    let duration = try #require(try keyed.bench.catalog.recording(id)?.format.duration)
    let part = "{\"start\":0,\"end\":\(duration / 2)}"
    #expect(try await keyed.status(.post, "/v1/recordings/\(id)/trim", body: part) == 202)
    try await says("limit_stored_bytes", 413, try await keyed.respond(.post, "/v1/recordings/\(id)/trim", body: part))
    #expect(try keyed.bench.catalog.of(#require(Tenant("ours"))).usage().expectedBytes == Int64(whole + half))
    await keyed.bench.runner.stop()
  }

  @Test func aTenantHasNoMoreRecordingsThanItMay() async throws {
    let keyed = try bench(["recordings": 1])
    let id = try await keyed.recording()
    try await says("limit_recordings", 429, try await keyed.respond(.post, "/v1/recordings", body: "RIFF"))
    _ = try await keyed.bench.finished(#require(try keyed.bench.catalog.recording(id)?.waveformJob))
    try await says("limit_recordings", 429, try await keyed.respond(.post, "/v1/recordings/\(id)/denoise"))
    let none = try bench(["recordings": 0])
    try await says("limit_recordings", 429, try await none.respond(.post, "/v1/recordings", body: "RIFF"))
  }

  @Test func aTenantSendsNoMoreRequestsThanItMay() async throws {
    let keyed = try bench(["requests_per_second": 2])
    let accounts = keyed.bench.context.accounts
    let (ours, theirs) = (try #require(Tenant("ours")), try #require(Tenant("theirs")))
    let ring = try #require(keyed.bench.context.access.ring)
    func take(_ tenant: Tenant, at now: Double) throws -> HTTPFields? {
      try accounts.takeRequest(of: tenant, named: ring.namedLimits(of: tenant), at: now)
    }
    #expect(try take(theirs, at: 100) == nil)
    let first = try #require(try take(ours, at: 100))
    #expect(first["RateLimit-Policy"] == "\"requests_per_second\";q=2;w=1")
    #expect(first["RateLimit"] == "\"requests_per_second\";r=1;t=1")
    _ = try take(ours, at: 100)
    for _ in 0..<3 { #expect(throws: ServiceError.self) { try take(ours, at: 100) } }
    // Refusals cost nothing: half a second later there is another one.
    _ = try take(ours, at: 100.5)
    #expect(throws: ServiceError.self) { try take(ours, at: 100.5) }
    for _ in 0..<2 { _ = try take(ours, at: 1000) }
    #expect(throws: ServiceError.self) { try take(ours, at: 1000) }
    let none = try bench(["requests_per_second": 0])
    try await says("limit_requests_per_second", 429, try await none.respond(.get, "/v1/recordings"))
  }

  @Test("refused requests count, too", arguments: ["/v1/nothing", "/readyz", "/v1/recordings/x"])
  func refusals(path: String) async throws {
    let keyed = try bench(["requests_per_second": 1e-3])
    #expect([403, 404].contains(try await keyed.status(.get, path)))
    try await says("limit_requests_per_second", 429, try await keyed.respond(.get, path))
    #expect(try await keyed.status(.get, "/v1/recordings", key: "theirs") == 200)
  }

  @Test func aTenantQueuesNoMoreJobsThanItMay() async throws {
    let keyed = try bench(["queued_jobs": 1], script: "case $command in waveform) gate ;; esac; finish")
    let made = try await keyed.respond(.post, "/v1/recordings", body: "RIFF")
    let id = try #require(RecordingID(try await KeyedBench.member("id", of: made)))
    try await says("limit_queued_jobs", 429, try await keyed.respond(.post, "/v1/recordings", body: "RIFF"))
    #expect(try await keyed.status(.post, "/v1/recordings", key: "theirs", body: "RIFF") == 201)
    #expect(try await keyed.status(.delete, "/v1/recordings/\(id)") == 204)
    await keyed.bench.runner.stop()
  }

  @Test(arguments: TenantLimits.Name.allCases) func aLimitOfZeroAllowsNothing(name: TenantLimits.Name) async throws {
    let keyed = try bench([name.rawValue: 0])
    let answer =
      name == .openUploads
      ? try await keyed.respond(.post, "/v1/uploads", fields: ["Upload-Length": "8"])
      : try await keyed.respond(.post, "/v1/recordings", body: "RIFF")
    try await says("limit_\(name.rawValue)", name == .storedBytes ? 413 : 429, answer)
    #expect(try keyed.bench.catalog.recordings(limit: 9).isEmpty)
  }

  @Test func aTenantOpensNoMoreUploadsThanItMay() async throws {
    let keyed = try bench(["open_uploads": 1])
    let fields: HTTPFields = ["Upload-Length": "8"]
    #expect(try await keyed.status(.post, "/v1/uploads", fields: fields) == 201)
    try await says("limit_open_uploads", 429, try await keyed.respond(.post, "/v1/uploads", fields: fields))
    #expect(try await keyed.status(.post, "/v1/uploads", key: "theirs", fields: fields) == 201)
  }

  @Test func jobsThatRanForADaysSecondsLeaveNoRoomForMore() async throws {
    let keyed = try bench(["job_seconds_per_day": 0.5])
    let job = try #require(try keyed.bench.catalog.recording(try await keyed.recording())?.waveformJob)
    _ = try await keyed.bench.finished(job)
    let tenant = try #require(Tenant("ours"))
    // As if it had taken a second.
    try keyed.bench.catalog.update(job) {
      ($0.state, $0.startedAt) = (.running, Timestamp(milliseconds: Timestamp.now.milliseconds - 1000))
    }
    try keyed.bench.catalog.update(job) { ($0.state, $0.finishedAt) = (.succeeded, .now) }
    #expect(try keyed.bench.catalog.of(tenant).usage().jobSecondsToday >= 1)
    keyed.bench.context.accounts.note(jobSeconds: try keyed.bench.catalog.jobSeconds())
    try await says("limit_job_seconds_per_day", 429, try await keyed.respond(.post, "/v1/recordings", body: "RIFF"))
    // The count survives a restart.
    let again = try KeyedBench(KeyedBench.lines(limits: ["job_seconds_per_day": 0.5])) {
      $0.dataDirectory = keyed.bench.configuration.dataDirectory
    }
    try await again.bench.eventually {
      (try? again.bench.runner.checkRoom(for: Client(tenant))) == nil
    }
    #expect(try await again.status(.post, "/v1/recordings", key: "theirs", body: "RIFF") == 201)
  }

  @Test func usageSaysWhatATenantHasAndMayHave() async throws {
    let keyed = try bench(
      ["recordings": 5, "queued_jobs": 3, "running_jobs": 1],
      script: "[ $command != denoise ] || exec sleep 1000; finish")
    let id = try await keyed.recording()
    _ = try await keyed.bench.finished(#require(try keyed.bench.catalog.recording(id)?.waveformJob))
    // One runs and one waits, and the limit of queued jobs counts both.
    for _ in 0..<2 { #expect(try await keyed.status(.post, "/v1/recordings/\(id)/denoise") == 202) }
    try await keyed.bench.eventually {
      try keyed.bench.catalog.of(#require(Tenant("ours"))).usage().runningJobs == 1
    }
    _ = try await keyed.respond(.post, "/v1/uploads", fields: ["Upload-Length": "8"])
    _ = try await keyed.recording(key: "theirs")
    let usage = String(decoding: try await keyed.respond(.get, "/v1/usage").body.collect(), as: UTF8.self)
    for part in [
      "\"tenant\":\"ours\"", "\"recordings\":{\"limit\":5,\"used\":3}",
      "\"stored_bytes\":{\"limit\":null,\"used\":6}", "\"open_uploads\":{\"limit\":null,\"used\":1}",
      "\"queued_jobs\":{\"limit\":3,\"used\":2}", "\"running_jobs\":{\"limit\":1,\"used\":1}",
    ] {
      #expect(usage.contains(part), "\(usage)")
    }
    _ = try await TestBench().check(.get, "/v1/usage", 200)
    await keyed.bench.runner.stop()
  }
}
