import Foundation
import Testing

/// On one machine, a job costs two transactions, however long it runs.
struct RunningJobTests {
  @Test func nothingIsWrittenToTheCatalogWhileAJobRuns() throws {
    let server = try TestServer("--workers", "1")
    let recording = try server.client.upload(LongClip.wave(), name: "long.wav")
    try server.client.succeed(try #require(recording["waveform"]["job"].string))
    let id = try #require(recording["id"].string)
    let job = try #require(try server.client.denoise(id)["id"].string)
    func progress() throws -> Double? {
      let document = try server.client.get("/v1/jobs/\(job)").json
      return document["state"].string == "running" ? document["progress"].double : nil
    }
    /// The files of the catalog, whose log gets longer with each transaction.
    func catalog() throws -> [Data] {
      try ["", "-wal"].map { try Data(contentsOf: URL(fileURLWithPath: server.data + "/catalog.sqlite" + $0)) }
    }
    #expect(try eventually { try progress() ?? 0 > 0 })
    let begun = try catalog()
    var (seen, isRunning) = (Set<Double>(), true)
    while seen.count < 5, isRunning {
      let now = try catalog()
      // Only what was read while the job ran counts.
      if let progress = try progress() { seen.insert(progress) } else { isRunning = false }
      if isRunning { #expect(now == begun) }
      _ = poll(nil, 0, 5)
    }
    #expect(seen.count > 1, "it was seen to go on")
    try server.client.succeed(job)
    #expect(try catalog() != begun)
    try server.stop()
  }
}
