import AudioIO
import Denoise
import Media
import PresentRows
import Processing
import Storage
import Testing
import Workers

@testable import AudioService
@testable import Jobs

/// Rows are read by later versions: these texts are a catalog's of version 0.1.0 before workers took typed requests.
@Suite struct JobRowTests {
  private static let asked: [(row: String, parameters: DenoiseParameters)] = [
    (
      #"{"format":"same","method":"mmse_lsa","output":"denoised","reduction":18,"sensitivity":1}"#, DenoiseParameters()
    ),
    (
      #"{"format":"flac","method":"mmse_lsa","noise":{"end":2.75,"start":1.25},"output":"residue","reduction":25,"#
        + #""sensitivity":1}"#,
      DenoiseParameters(
        noise: .region(start: 1.25, end: 2.75), settings: DenoiseSettings(reductionDB: 25, output: .residue),
        format: .flac)
    ),
    (
      #"{"format":"same","method":"wiener","noise":{"quantile":0.25},"output":"denoised","reduction":7.5,"#
        + #""sensitivity":1.2}"#,
      DenoiseParameters(
        noise: .quantile(0.25), settings: DenoiseSettings(method: .wiener, reductionDB: 7.5, sensitivity: 1.2))
    ),
    (
      #"{"adapt":"if_certain","format":"same","method":"mmse_lsa","output":"denoised","reduction":18,"sensitivity":1}"#,
      DenoiseParameters(settings: DenoiseSettings(adaptation: .ifCertain))
    ),
  ]

  @Test(arguments: asked.indices)
  func aDenoiseJobsParametersAreRead(index: Int) throws {
    let (row, parameters) = Self.asked[index]
    #expect(RowJSON.value(DenoiseParameters.self, from: row) == parameters)
    #expect(RowJSON.text(parameters) == row)
  }

  @Test func aConvertJobsParametersAreRead() {
    #expect(
      RowJSON.value(ConvertJob.Parameters.self, from: #"{"format":"mp3"}"#) == ConvertJob.Parameters(format: .mp3))
    #expect(RowJSON.text(ConvertJob.Parameters(format: .mp3)) == #"{"format":"mp3"}"#)
  }

  @Test(arguments: [
    #"{"recording":"01a204f8-1ad4-71e2-ac95-a094de9ee58d"}"#,
    #"{"clippedSamples":0,"noise":{"quantile":0.25},"profile":{"frequencies":[20.83,7854.17],"#
      + #""powerDb":[-56.49,-56.74]},"recording":"01a204f8-294d-730f-8a00-91be04e94a70"}"#,
    #"{"clippedSamples":0,"noise":{"end":5.25,"start":0.3},"recording":"01a204f8-2917-7216-8728-c9dc1558c1bb"}"#,
    #"{"noise":{"adapted":true,"end":5.25,"start":0.3},"recording":"01a204f8-2917-7216-8728-c9dc1558c1bb"}"#,
  ])
  func aResultIsRead(row: String) throws {
    let result = try #require(RowJSON.value(JobResult.self, from: row))
    #expect(RowJSON.text(result) == row)
  }

  @Test func invalidParametersAreRejected() {
    for row in ["", "{}", #"{"format":"same"}"#, Self.asked[0].row.replacing("mmse_lsa", with: "other")] {
      #expect(RowJSON.value(DenoiseParameters.self, from: row) == nil, "\(row)")
    }
  }

  @Test func aJobThatWasQueuedBeforeTheStartIsDone() async throws {
    let bench = try TestBench(script: "echo \"$request\" > $folder/request; finish")
    let source = try bench.recording()
    let made = try bench.recording(state: .queued)
    let job = Job(kind: .denoise, recording: source.id, output: made.id, parameters: Self.asked[1].row)
    try bench.catalog.insert(job)
    try bench.runner.resume()
    #expect(try await bench.finished(job.id).state == .succeeded)
    let request = try String(contentsOfFile: bench.folder.path + "/request", encoding: .utf8)
    #expect(request.contains(#""parameters":\#(Self.asked[1].row)"#))
  }
}
