import Glibc
import Processing
import Storage
import Testing
import Workers

@testable import AudioService
@testable import Jobs

/// The method `voice`, which may not be installed.
@Suite struct VoiceRequestsTests {
  /// A file that has the length of the weights, which is all that the service looks at; nil for none.
  private static func bench(installed: Bool) throws -> TestBench {
    var path = ""
    let bench = try TestBench { configuration in
      path = configuration.dataDirectory + ".weights"
      configuration.voice = path
    }
    if installed {
      let file = unsafe creat(path, 0o644)
      #expect(ftruncate(file, 64 + 2 * 2_134_923) == 0)
      close(file)
    }
    return bench
  }

  @Test("methods are listed if they are installed", arguments: [false, true])
  func list(isInstalled: Bool) async throws {
    let bench = try Self.bench(installed: isInstalled)
    let answer = try await bench.check(.get, "/v1/methods", 200)
    #expect(answer.contains("\"voice\"") == isInstalled && answer.contains("\"mmse_lsa\""))
    _ = try await bench.check(.get, "/v1/methods?a=1", 400)
    await bench.runner.stop()
  }

  @Test(
    "a job and a preview are refused without the weights, and with members that the networks don't have",
    arguments: [
      (false, "", 422, "method"), (true, #","sensitivity":1"#, 400, "sensitivity"),
      (true, #","adapt":false"#, 400, "adapt"),
    ])
  func refusal(isInstalled: Bool, members: String, status: Int, parameter: String) async throws {
    let bench = try Self.bench(installed: isInstalled)
    let path = "/v1/recordings/\(try bench.recording().id)/denoise"
    for (path, window) in [(path, ""), (path + "/preview", #","window":{"start":1,"end":2}"#)] {
      let answer = try await bench.check(.post, path, body: #"{"method":"voice"\#(members)\#(window)}"#, status)
      #expect(answer.contains("\"parameter\":\"\(parameter)\""))
      #expect(answer.contains("deploy/install voice") == !isInstalled)
    }
    await bench.runner.stop()
  }

  @Test("a job names its weights and limit, and only a node with these weights takes it")
  func job() async throws {
    let asked = DenoiseParameters(settings: .init(method: .voice, reductionDB: 30))
    let row = RowJSON.text(asked)
    #expect(row.contains("\"weights\":\"deepfilternet3-1\""))
    #expect(Strength.allCases.map { $0.reductionDB(.voice) } == [12, 20, 30])
    let bench = try Self.bench(installed: true)
    var job = Job(id: JobID(), kind: .denoise, recording: try bench.recording().id)
    job.parameters = row
    var settings = bench.configuration.workerSettings
    #expect(DenoiseJob.suits(job, settings))
    job.parameters = row.replacing("deepfilternet3-1", with: "deepfilternet4-1")
    #expect(!DenoiseJob.suits(job, settings))
    (job.parameters, settings.voice) = (row, "/nowhere")
    #expect(!DenoiseJob.suits(job, settings))
    job.parameters = RowJSON.text(DenoiseParameters())
    #expect(DenoiseJob.suits(job, settings))
    await bench.runner.stop()
  }
}
