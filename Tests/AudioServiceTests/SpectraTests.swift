import HTTP
import Testing

@testable import AudioService
@testable import Jobs

@Suite struct SpectraTests {
  @Test func aSpectrumMayBeCachedForever() async throws {
    let bench = try TestBench(script: DenoisePreviewTests.script)
    let source = try bench.recording()
    let path = "/v1/recordings/\(source.id)/spectrum?start=1.25&end=2.75"
    #expect(try await bench.check(.get, path, 200) == #"{"frequencies":[0,20.83],"power_db":[-81.2,-77]}"#)
    let answer = try await bench.respond(.get, path)
    let etag = try #require(answer.fields["ETag"])
    #expect(try await bench.respond(.get, path, fields: ["If-None-Match": etag]).status.code == 304)
  }

  @Test(
    "a spectrum without a valid stretch is rejected",
    arguments: [
      ("", 400), ("?start=1", 400), ("?end=2", 400), ("?start=2&end=2", 400), ("?start=-1&end=2", 400),
      ("?start=0&end=601", 400), ("?start=60&end=61", 422),
    ])
  func wrongSpectrum(query: String, status: Int) async throws {
    let bench = try TestBench(script: DenoisePreviewTests.script)
    let source = try bench.recording()
    _ = try await bench.check(.get, "/v1/recordings/\(source.id)/spectrum\(query)", status)
  }
}
