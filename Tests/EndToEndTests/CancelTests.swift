import Foundation
import Testing

@testable import Sounds

/// A canceled job ends at once and leaves nothing behind.
struct CancelTests {
  private func running(_ server: TestServer) throws -> (source: String, job: String, output: String) {
    let source = try #require(try server.client.uploadReady(LongClip.wave())["id"].string)
    let job = try server.client.denoise(source, #"{"noise":{"start":1,"end":3}}"#)
    let id = try #require(job["id"].string)
    var document = job
    while document["state"].string != "running" || document["progress"].double == 0 {
      document = try server.client.get("/v1/jobs/\(id)?wait=20").json
      try #require(["queued", "running"].contains(document["state"].string), "\(document)")
    }
    #expect(!server.workers().isEmpty)
    return (source, id, try #require(job["result"]["recording"].string))
  }

  /// Expects that no process but the service itself has the data folder in its command line.
  private func expectGone(_ server: TestServer, _ output: String, _ job: String) throws {
    let isAlone = eventually { Processes.naming(server.data) == [server.processID] }
    #expect(isAlone, "still running: \(Processes.naming(server.data).map(Processes.commandLine))")
    #expect(try server.client.get("/v1/recordings/\(output)").status == 404)
    #expect(try server.client.get("/v1/recordings/\(output)/waveform").status == 404)
    let isEmpty = try eventually {
      try server.leftovers().allSatisfy { !$0.contains(output) && !$0.contains(job) }
    }
    let left = try server.leftovers()
    #expect(isEmpty, "\(left)")
  }

  @Test func cancellingAJobEndsItsChildAndRemovesItsRecording() throws {
    let server = try TestServer()
    let (source, job, output) = try running(server)
    let answer = try server.client.delete("/v1/jobs/\(job)")
    #expect(answer.status == 202 && answer.json["state"] == .string("cancelled"))
    try expectGone(server, output, job)
    #expect(try server.client.get("/v1/jobs/\(job)?wait=20").json["state"] == .string("cancelled"))
    expectProblem(try server.client.delete("/v1/jobs/\(job)"), 409, "job_finished")
    #expect(try server.client.recording(source)["waveform"]["state"] == .string("ready"))
    try server.stop()
  }

  @Test func stoppingTheServiceEndsChildrenBeforeItsLastRequests() throws {
    let server = try TestServer("--grace-period", "600")
    _ = try running(server)
    let slow = try Wire(port: server.client.port)
    #expect(slow.send("POST /v1/recordings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nRIFF"))
    #expect(try eventually { try !FileManager.default.contentsOfDirectory(atPath: server.data + "/incoming").isEmpty })
    server.command.signal(SIGTERM)
    #expect(eventually { server.workers().isEmpty })
    // It's waiting for the rest of the upload.
    #expect(server.command.isRunning)
    slow.close()
    #expect(try server.command.finish(withinSeconds: 60).status == 0)
  }

  @Test func deletingTheRecordingThatAJobMakesCancelsTheJob() throws {
    let server = try TestServer()
    let (_, job, output) = try running(server)
    #expect(try server.client.delete("/v1/recordings/\(output)").status == 204)
    try expectGone(server, output, job)
    #expect(try server.client.get("/v1/jobs/\(job)").json["state"] == .string("cancelled"))
    try server.stop()
  }

  @Test func deletingTheSourceCancelsWhatRunsAndKeepsWhatIsFinished() throws {
    let server = try TestServer()
    let finished = try server.client.uploadReady(BadUploadTests.tone.bytes)
    let result = try server.client.denoise(try #require(finished["id"].string))
    try server.client.succeed(try #require(result["id"].string))
    #expect(try server.client.delete("/v1/recordings/\(finished["id"].string ?? "")").status == 204)
    let kept = try #require(result["result"]["recording"].string)
    #expect(try server.client.get("/v1/recordings/\(kept)/audio").status == 200)

    let (source, job, output) = try running(server)
    #expect(try server.client.delete("/v1/recordings/\(source)").status == 204)
    try expectGone(server, output, job)
    try server.stop()
  }
}
