import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService
@testable import Jobs

@Suite struct TrimRequestsTests {
  /// The job's child waits to be released.
  private static let held = "[ $command != trim ] || read -r line < $folder/hold; finish"

  private func trim(_ bench: TestBench, _ source: Recording, _ body: String, _ status: Int) async throws -> String {
    try await bench.check(.post, "/v1/recordings/\(source.id)/trim", body: body, status)
  }

  @Test("the result exists from the first response on, with its length, and is finished by the job")
  func life() async throws {
    let bench = try TestBench(script: Self.held)
    try bench.holdProbe()
    let source = try bench.recording(name: "a talk.wav")
    let answer = try await trim(bench, source, #"{"start":1,"end":1.5}"#, 202)
    #expect(answer.contains(#""kind":"trim""#))
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    let output = try #require(job.output)
    let made = try #require(try bench.catalog.recording(output))
    #expect(made.name == "a talk (trimmed).wav" && made.format.frames == 500 && made.format.duration == 0.5)
    #expect(made.derivedFrom == Derivation(recording: source.id, job: job.id, operation: "trim"))
    #expect(try await bench.respond(.get, "/v1/recordings/\(output)/audio").status == .conflict)
    try await bench.releaseProbe()
    #expect(try await bench.finished(job.id).state == .succeeded)
    let document = try await bench.check(.get, "/v1/recordings/\(output)", 200)
    #expect(document.contains(#""operation":"trim""#) && document.contains(#""state":"ready""#))
    #expect(try await bench.check(.get, "/v1/recordings/\(output)/labels", 200).contains(#""inherited":false"#))
  }

  @Test("the result has the labels of its part, counted from where it begins, as tracks of its own")
  func labels() async throws {
    let bench = try TestBench()
    let source = try bench.recording()
    let labels = #"""
      {"labels":[{"start":0,"end":0.9,"text":"before"},{"start":0.5,"end":1.5,"text":"cut off","words":[
      {"start":0.5,"end":0.8,"text":"cut"},{"start":1.2,"end":1.5,"text":"off"}]},
      {"start":1.25,"end":1.25,"text":"mark"},
      {"start":1.5,"end":9,"text":"to the end"},{"start":2,"end":3,"text":"after"}]}
      """#
    let made = try await bench.respond(
      .post, "/v1/recordings/\(source.id)/labels?name=Takes&kind=transcript&language=de", body: labels)
    #expect(made.status == .created)
    _ = try await trim(bench, source, #"{"start":1,"end":2}"#, 202)
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    #expect(try await bench.finished(job.id).state == .succeeded)
    let output = try #require(job.output)
    let list = try await bench.check(.get, "/v1/recordings/\(output)/labels", 200)
    for part in [#""inherited":false"#, #""name":"Takes""#, #""kind":"transcript""#, #""language":"de""#] {
      #expect(list.contains(part), "\(list)")
    }
    let track = try #require(try bench.catalog.labelTracks(of: output).first)
    #expect(track.count == 3 && track.words == 1 && track.start == 0 && track.end == 1_000_000)
    let cut = try await bench.check(.get, "/v1/recordings/\(output)/labels/\(track.id)", 200)
    #expect(
      cut
        == #"{"labels":[{"id":"1","start":0,"end":0.5,"text":"cut off","words":[{"start":0.2,"end":0.5,"text":"off"}]},"#
        + #"{"id":"2","start":0.25,"end":0.25,"text":"mark"},{"id":"3","start":0.5,"end":1,"text":"to the end"}]}"#)
    let sources = try await bench.check(.get, "/v1/recordings/\(source.id)/labels", 200)
    #expect(sources.contains(#""count":5"#), "the source's stay as they are")
  }

  @Test(
    "a window that isn't one is rejected with the member at fault",
    arguments: [
      ("{}", "start"), (#"{"start":1}"#, "end"), (#"{"end":1}"#, "start"), (#"{"start":2,"end":2}"#, "end"),
      (#"{"start":2,"end":1}"#, "end"), (#"{"start":-1,"end":1}"#, "start"), (#"{"start":60,"end":61}"#, "start"),
      (#"{"start":"1","end":2}"#, "start"), (#"{"start":1,"end":1e10}"#, "end"), (#"{"start":1,"end":2,"to":3}"#, "to"),
      (#"{"start":null,"end":2}"#, "start"), (#"{"start":1,"end":2,"name":""}"#, "name"),
    ])
  func bad(body: String, parameter: String) async throws {
    let bench = try TestBench()
    let answer = try await trim(bench, try bench.recording(), body, 400)
    #expect(answer.contains("\"parameter\":\"\(parameter)\""), "\(answer)")
    #expect(try bench.catalog.jobs(limit: 1).isEmpty && bench.catalog.recordings(limit: 9).count == 1)
  }

  @Test("a repeated key repeats the answer; deleting the source cancels the job and removes its result")
  func keysAndDeletion() async throws {
    let bench = try TestBench(script: Self.held)
    try bench.holdProbe()
    let source = try bench.recording()
    let path = "/v1/recordings/\(source.id)/trim"
    let body = #"{"start":1,"end":2,"name":"part.wav"}"#
    let first = try await bench.respond(.post, path, fields: ["Idempotency-Key": "k"], body: body)
    let second = try await bench.respond(.post, path, fields: ["Idempotency-Key": "k"], body: body)
    #expect(second.fields["Idempotency-Replayed"] == "true" && second.fields["Location"] == first.fields["Location"])
    let other = try await bench.respond(.post, path, fields: ["Idempotency-Key": "k"], body: #"{"start":1,"end":3}"#)
    #expect(other.status.code == 422)
    let jobs = try bench.catalog.jobs(limit: 9)
    #expect(jobs.count == 1)
    #expect(try await bench.respond(.delete, "/v1/recordings/\(source.id)").status == .noContent)
    #expect(try await bench.finished(jobs[0].id).state == .cancelled)
    #expect(try bench.catalog.recordings(limit: 9).isEmpty)
    #expect(try await trim(bench, source, body, 404).contains("not_found"))
  }

  @Test("an end past the recording's is clamped, and an unfinished source can't be cut")
  func bounds() async throws {
    let bench = try TestBench()
    let source = try bench.recording()
    _ = try await trim(bench, source, #"{"start":59.5,"end":99}"#, 202)
    let output = try #require(try bench.catalog.jobs(limit: 1).first?.output)
    #expect(try bench.catalog.recording(output)?.format.frames == 500)
    try bench.catalog.update(source.id) { $0.audioKey = nil }
    _ = try await trim(bench, source, #"{"start":1,"end":2}"#, 409)
  }
}
