import Foundation
import HTTP
import PresentRows
import Storage
import Testing

@testable import AudioService
@testable import Jobs

@Suite struct LoudnessRequestsTests {
  @Test("a loudness is measured once, by a job of its own kind, and kept")
  func once() async throws {
    let bench = try TestBench()
    let source = try bench.recording()
    let path = "/v1/recordings/\(source.id)/loudness"
    let expected = #"{"integrated_lufs":-20.51,"range_lu":3.25,"true_peak_dbtp":-1}"#
    for _ in 1...2 { #expect(try await bench.check(.get, path, 200) == expected) }
    let jobs = try bench.catalog.jobs(limit: 9)
    #expect(jobs.map(\.kind) == [.loudness] && jobs.first?.recording == source.id)
    let document = try await bench.check(.get, "/v1/jobs/\(jobs[0].id)", 200)
    #expect(document.contains(#""measured":{"integrated_lufs":-20.51"#), "\(document)")
    let answer = try await bench.respond(.get, path)
    let tag = try #require(answer.fields["ETag"])
    #expect(answer.fields["Cache-Control"]?.contains("immutable") == true)
    #expect(try await bench.respond(.get, path, fields: ["If-None-Match": tag]).status == .notModified)
  }

  @Test("nulls are told as nulls")
  func nulls() async throws {
    let bench = try TestBench(script: #"echo '{"loudness":{}}'"#)
    let path = "/v1/recordings/\(try bench.recording().id)/loudness"
    #expect(
      try await bench.check(.get, path, 200) == #"{"integrated_lufs":null,"range_lu":null,"true_peak_dbtp":null}"#)
  }

  @Test("one that takes long gets 503 and Retry-After, and simultaneous requests share a job")
  func slow() async throws {
    let bench = try TestBench(script: "[ $command != loudness ] || read -r line < $folder/hold; finish") {
      $0.conversionWaitSeconds = 0.01
    }
    try bench.holdProbe()
    let path = "/v1/recordings/\(try bench.recording().id)/loudness"
    for _ in 1...2 {
      let answer = try await bench.respond(.get, path)
      #expect(answer.status == .serviceUnavailable && answer.fields["Retry-After"] == "5")
      #expect(String(decoding: try await answer.body.collect(), as: UTF8.self).contains("\"code\":\"measuring\""))
    }
    let jobs = try bench.catalog.jobs(limit: 9)
    #expect(jobs.count == 1)
    try await bench.releaseProbe()
    #expect(try await bench.finished(jobs[0].id).state == .succeeded)
    _ = try await bench.check(.get, path, 200)
  }

  @Test("a failure is told and not kept; an unfinished recording has none")
  func failures() async throws {
    let bench = try TestBench(script: "failure unsupported_media false")
    let source = try bench.recording()
    _ = try await bench.check(.get, "/v1/recordings/\(source.id)/loudness", 422)
    #expect(try await bench.respond(.get, "/v1/recordings/\(source.id)/loudness?x=1").status == .badRequest)
    _ = try await bench.check(.get, "/v1/recordings/\(RecordingID())/loudness", 404)
    try bench.catalog.update(source.id) { $0.audioKey = nil }
    _ = try await bench.check(.get, "/v1/recordings/\(source.id)/loudness", 409)
  }
}
