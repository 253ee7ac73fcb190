import Testing

@testable import Sounds

/// Hundreds of children come and go, and the end of each is noticed.
struct ManyJobsTests {
  @Test func manyShortJobsAllEnd() throws {
    let server = try TestServer("--workers", "4")
    let client = server.client
    let jobs = try (0..<60).map { number in
      let recording = try client.upload(BadUploadTests.tone.bytes, name: "clip \(number).wav")
      let id = try #require(recording["id"].string)
      return [try #require(recording["waveform"]["job"].string), try #require(try client.denoise(id)["id"].string)]
    }
    for job in jobs.joined() { try client.succeed(job) }
    let isIdle = eventually { server.workers().isEmpty }
    #expect(isIdle)
    try server.stop()
  }

  @Test func aFullQueueRejectsRequestsUntilThereIsRoom() throws {
    let server = try TestServer("--workers", "1", "--max-queued-jobs", "2")
    let client = server.client
    let long = try client.upload(LongClip.wave(), name: "long.wav")
    try client.succeed(try #require(long["waveform"]["job"].string))
    let id = try #require(long["id"].string)
    let jobs = try (0..<2).map { _ in try #require(try client.denoise(id)["id"].string) }
    let refused = try client.post("/v1/recordings/\(id)/denoise", json: "{}")
    expectProblem(refused, 429, "queue_full")
    #expect(refused["retry-after"] != nil)
    let upload = try client.send("POST", "/v1/recordings", [:], .bytes(BadUploadTests.tone.bytes))
    expectProblem(upload, 429, "queue_full")
    for job in jobs { #expect(try client.delete("/v1/jobs/\(job)").status == 202) }
    // A canceled job keeps its place until its child is gone.
    let isTaken = try eventually {
      try client.send("POST", "/v1/recordings", [:], .bytes(BadUploadTests.tone.bytes)).status == 201
    }
    #expect(isTaken)
    #expect(try client.get("/v1/recordings").json["recordings"].array?.count == 2)
    try server.stop()
  }
}
