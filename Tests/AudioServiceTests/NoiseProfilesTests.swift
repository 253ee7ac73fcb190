import Foundation
import HTTP
import PresentRows
import Storage
import Terms
import Testing

@testable import AudioService
@testable import Jobs

/// Noise profiles that are kept, and their use in denoise requests.
@Suite struct NoiseProfilesTests {
  private static let numbers = #""frequencies":[0,1000.5,4000],"power_db":[[-80,-91.25,-300]],"steadiness":[0.5]}"#
  private static let file = #"{"name":"Fan","# + numbers

  /// The child writes a profile, and keeps the one that it gets.
  private static let script = """
    case $command in
      noiseProfile) echo "$noise" > "$folder/noise"; echo '\(file)' > "$output"
        echo '{"noise_profile":{"noise":{"quantile":0.2},"warnings":[]}}' ;;
      denoise) member profilePath; cp "$value" "$folder/used"; finish ;;
      *) finish ;;
    esac
    """

  private let bench: TestBench

  init() throws { bench = try TestBench(script: Self.script) }

  /// Keeps a profile and returns its path, ID and tag.
  private func kept(_ body: String = file) async throws -> (path: String, id: String, etag: String) {
    let made = try await bench.send(.post, "/v1/noise-profiles", body: body, 201)
    let path = try #require(made.fields["Location"])
    return (path, String(path.suffix(36)), try #require(made.fields["ETag"]))
  }

  @Test("a profile is learned from a recording and kept when the recording is deleted")
  func learning() async throws {
    let source = try bench.recording()
    let made = try await bench.send(
      .post, "/v1/noise-profiles", body: #"{"recording":"\#(source.id)","noise":{"start":1,"end":2}}"#, 201)
    for part in [
      #""name":"Noise profile""#, #""recording":"\#(source.id)""#, #""channels":1"#, #""sample_rate":null"#,
      Self.numbers,
    ] { #expect(made.text.contains(part), "\(made.text)") }
    let noise = try String(contentsOfFile: bench.folder.path + "/noise", encoding: .utf8)
    #expect(noise == #"{"end":2,"start":1}"# + "\n")
    _ = try await bench.send(.delete, "/v1/recordings/\(source.id)", 204)
    let path = try #require(made.fields["Location"])
    let kept = try await bench.send(.get, path, 200)
    for part in [#""recording":null"#, #""noise":null"#, Self.numbers] { #expect(kept.text.contains(part)) }
    #expect(kept.fields["ETag"] != made.fields["ETag"])
    let jobs = URL(fileURLWithPath: bench.store.workFolder(of: JobID())).deletingLastPathComponent().path
    try await bench.eventually { try FileManager.default.contentsOfDirectory(atPath: jobs).isEmpty }
  }

  @Test("a list with more numbers than there may be is refused")
  func tooManyNumbers() async throws {
    let many = Array(repeating: "1", count: 20_001).joined(separator: ",")
    for body in [
      #"{"frequencies":[\#(many)],"power_db":[[1,2]]}"#, #"{"frequencies":[1,2],"power_db":[[\#(many)]]}"#,
      #"{"frequencies":[1,2],"power_db":[\#(Array(repeating: "[1,2]", count: 1025).joined(separator: ","))]}"#,
    ] { _ = try await bench.send(.post, "/v1/noise-profiles", body: body, 400) }
  }

  @Test("a profile's file, or another service's profile, is kept with its numbers unchanged")
  func files() async throws {
    let first = try await kept()
    let text = try await bench.send(.get, first.path, 200).text
    #expect(text.contains(#""name":"Fan""#) && text.contains(#""recording":null"#) && text.contains(Self.numbers))
    let second = try await kept(text)
    #expect(second.id != first.id)
    #expect(try await bench.send(.get, second.path, 200).text.hasSuffix(Self.numbers))
    let unnamed = try await kept(#"{"frequencies":[0,1],"power_db":[[1,1],[2,2]]}"#)
    #expect(try await bench.send(.get, unnamed.path, 200).text.contains(#""name":"Noise profile""#))
  }

  @Test("a list has pages, newest first")
  func listing() async throws {
    #expect(try await bench.send(.get, "/v1/noise-profiles", 200).text == #"{"next_cursor":null,"profiles":[]}"#)
    var ids: [String] = []
    for _ in 0..<3 { ids.append(try await kept().id) }
    let first = try await bench.send(.get, "/v1/noise-profiles?limit=2", 200)
    #expect(first.text.contains(#""next_cursor":"\#(ids[1])""#) && !first.text.contains(#""id":"\#(ids[0])""#))
    #expect(first.fields["Link"]?.contains("cursor=\(ids[1])") == true)
    let second = try await bench.send(.get, "/v1/noise-profiles?limit=2&cursor=\(ids[1])", 200)
    #expect(second.text.contains(#""next_cursor":null"#) && second.text.contains(#""id":"\#(ids[0])""#))
    for query in ["limit=0", "limit=1001", "cursor=x", "q=a"] {
      _ = try await bench.send(.get, "/v1/noise-profiles?\(query)", 400)
    }
  }

  @Test("a rename and a deletion heed If-Match")
  func conditions() async throws {
    let profile = try await kept()
    let unchanged = try await bench.send(.get, profile.path, fields: ["If-None-Match": profile.etag], 304)
    #expect(unchanged.text.isEmpty)
    let renamed = try await bench.send(
      .patch, profile.path, fields: ["If-Match": profile.etag], body: #"{"name":"Studio"}"#, 200)
    #expect(renamed.text.contains(#""name":"Studio""#) && renamed.fields["ETag"] != profile.etag)
    _ = try await bench.send(.patch, profile.path, fields: ["If-Match": profile.etag], body: #"{"name":"x"}"#, 412)
    _ = try await bench.send(.delete, profile.path, fields: ["If-Match": profile.etag], 412)
    for body in ["{}", #"{"name":""}"#, #"{"name":5}"#, #"{"nam":"x"}"#] {
      _ = try await bench.send(.patch, profile.path, body: body, 400)
    }
    _ = try await bench.send(.patch, profile.path, body: #"{"name":"Again"}"#, 200)
    _ = try await bench.send(.delete, profile.path, 204)
    for method in [HTTPMethod.get, .delete] { _ = try await bench.send(method, profile.path, 404) }
    _ = try await bench.send(.patch, profile.path, body: #"{"name":"x"}"#, 404)
    _ = try await bench.send(.get, "/v1/noise-profiles/x", 404)
  }

  @Test(
    "an invalid profile is refused with the member at fault",
    arguments: [
      ("{}", 400, "recording"), (#"{"recording":"x"}"#, 404, "recording"), (#"{"recording":5}"#, 400, "recording"),
      (#"{"recording":"ID","noise":{"profile":"x"}}"#, 400, "noise.profile"),
      (#"{"recording":"ID","noise":{"start":70,"end":71}}"#, 422, "noise"),
      (#"{"recording":"ID","sample_rate":8000}"#, 400, "sample_rate"), (#"{"recordin":"ID"}"#, 400, "recordin"),
      (#"{"frequencies":[0,1]}"#, 400, "power_db"), (#"{"power_db":[[1,1]]}"#, 400, "frequencies"),
      (#"{"frequencies":[1,0],"power_db":[[1,1]]}"#, 400, "frequencies"),
      (#"{"frequencies":["0",1],"power_db":[[1,1]]}"#, 400, "frequencies"),
      (#"{"frequencies":[0,1e999],"power_db":[[1,1]]}"#, 400, "frequencies"),
      (#"{"frequencies":[0,1],"power_db":[]}"#, 400, "power_db"),
      (#"{"frequencies":[0,1],"power_db":[1,1]}"#, 400, "power_db"),
      (#"{"frequencies":[0,1],"power_db":[[1,1],[1]]}"#, 400, "power_db"),
      (#"{"frequencies":[0,1],"power_db":[[1,1e9]]}"#, 400, "power_db"),
      (#"{"frequencies":[0,1],"power_db":[[-300,-300]]}"#, 400, "power_db"),
      (#"{"frequencies":[0,1],"power_db":[[1,1]],"steadiness":[0,1]}"#, 400, "steadiness"),
      (#"{"frequencies":[0,1],"power_db":[[1,1]],"steadiness":[2]}"#, 400, "steadiness"),
      (#"{"frequencies":[0,1],"power_db":[[1,1]],"steadiness":["1"]}"#, 400, "steadiness"),
      (#"{"frequencies":[0,1],"power_db":[[1,1]],"steadiness":1}"#, 400, "steadiness"),
      (#"{"frequencies":[0,1],"power_db":[[1,1]],"sample_rate":0}"#, 400, "sample_rate"),
      (#"{"frequencies":[0,1],"power_db":[[1,1]],"recording":5}"#, 400, "recording"),
      (#"{"frequencies":[0,1],"power_db":[[1,1]],"recording":""}"#, 400, "recording"),
    ])
  func invalid(body: String, status: Int, parameter: String) async throws {
    let source = try bench.recording()
    let body = body.replacing("ID", with: source.id.text)
    let text = try await bench.send(.post, "/v1/noise-profiles", body: body, status).text
    #expect(text.contains(#""parameter":"\#(parameter)""#), "\(text)")
    #expect(try bench.catalog.noiseProfiles(limit: 9).isEmpty)
  }

  @Test("a recording that is still being made can't be learned from")
  func unfinished() async throws {
    let source = try bench.recording()
    try bench.catalog.update(source.id) { $0.audioKey = nil }
    _ = try await bench.send(.post, "/v1/noise-profiles", body: #"{"recording":"\#(source.id)"}"#, 409)
  }

  @Test("a job and a preview use the profile, even if it is deleted before the job begins")
  func using() async throws {
    let source = try bench.recording(), profile = try await kept()
    let noise = #""noise":{"profile":"\#(profile.id)"}"#
    let used = bench.folder.path + "/used"
    _ = try await bench.send(
      .post, "/v1/recordings/\(source.id)/denoise/preview", body: #"{"window":{"start":1,"end":2},\#(noise)}"#, 200)
    #expect(try String(contentsOfFile: used, encoding: .utf8).hasSuffix(Self.numbers))
    try FileManager.default.removeItem(atPath: used)
    _ = try await bench.send(.post, "/v1/recordings/\(source.id)/denoise", body: "{\(noise)}", 202)
    let first = try #require(try bench.catalog.jobs(limit: 1).first)
    #expect(try await bench.finished(first.id).state == .succeeded)
    #expect(try String(contentsOfFile: used, encoding: .utf8).hasSuffix(Self.numbers))
    try FileManager.default.removeItem(atPath: used)
    let waiting = try job(of: source, using: profile.id)
    _ = try await bench.send(.delete, profile.path, 204)
    bench.runner.submit(waiting)
    _ = try await bench.finished(waiting.id)
    #expect(try String(contentsOfFile: used, encoding: .utf8).hasSuffix(Self.numbers))
  }

  /// A job that waits.
  private func job(of source: Recording, using profile: String) throws -> Job {
    let job = Job(
      kind: .denoise, recording: source.id, output: RecordingID(),
      parameters: #"{"noise":{"profile":"\#(profile)"},"format":"same","method":"wiener","reduction":18,"#
        + #""sensitivity":1,"output":"denoised"}"#)
    try bench.catalog.insert(job)
    return job
  }

  @Test("a job whose profile is gone fails with a reason")
  func lost() async throws {
    let job = try job(of: bench.recording(), using: KeptProfileID().text)
    bench.runner.submit(job)
    #expect(try await bench.finished(job.id).error?.contains("noise_profile_deleted") == true)
  }

  @Test(
    "noise of an invalid form is refused with the member at fault",
    arguments: [
      (#"{"profile":"x"}"#, 404, "noise.profile"), (#"{"profile":5}"#, 400, "noise.profile"),
      (#"{"profile":"x","quantile":0.2}"#, 400, "noise.quantile"), (#"{"regions":[]}"#, 400, "noise.regions"),
      (#"{"regions":{}}"#, 400, "noise.regions"), (#"{"regions":[5]}"#, 400, "noise.regions"),
      (#"{"regions":[{"start":1}]}"#, 400, "noise.regions[0].end"),
      (#"{"regions":[{"end":1}]}"#, 400, "noise.regions[0].start"),
      (#"{"regions":[{"start":1,"end":1}]}"#, 400, "noise.regions[0].end"),
      (#"{"regions":[{"start":1,"end":2,"to":3}]}"#, 400, "noise.regions[0].to"),
      (#"{"regions":[{"start":1,"end":3},{"start":2,"end":4}]}"#, 400, "noise.regions[1].start"),
      (#"{"regions":[{"start":5,"end":6},{"start":1,"end":2}]}"#, 400, "noise.regions[1].start"),
      (#"{"regions":[{"start":1,"end":2},{"start":59,"end":61}]}"#, 422, "noise"),
      (#"{"regions":[{"start":1,"end":2},{"start":3,"end":3.01}]}"#, 422, "noise"),
      (#"{"regions":[{"start":1,"end":2}],"start":1,"end":2}"#, 400, "noise.start"),
      (#"{"regions":[MANY]}"#, 400, "noise.regions"), ("{}", 400, "noise.end"),
    ])
  func invalidNoise(noise: String, status: Int, parameter: String) async throws {
    let source = try bench.recording()
    let many = (0..<33).map { #"{"start":\#($0),"end":\#($0).5}"# }.joined(separator: ",")
    let body = #"{"noise":\#(noise.replacing("MANY", with: many))}"#
    let text = try await bench.send(.post, "/v1/recordings/\(source.id)/denoise", body: body, status).text
    #expect(text.contains(#""parameter":"\#(parameter)""#), "\(text)")
    #expect(try bench.catalog.jobs(limit: 1).isEmpty)
  }

  @Test("several regions reach the worker in order")
  func regions() async throws {
    let bench = try TestBench(
      script: #"case $request in *'"regions":[{"end":2,"start":1},{"end":9,"start":8.5}]'*) finish ;; esac"#)
    let source = try bench.recording()
    _ = try await bench.check(
      .post, "/v1/recordings/\(source.id)/denoise",
      body: #"{"noise":{"regions":[{"start":1,"end":2},{"start":8.5,"end":9}]}}"#, 202)
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    #expect(try await bench.finished(job.id).state == .succeeded)
  }
}
