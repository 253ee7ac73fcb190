import Glibc
import Testing

@testable import Sounds

/// Recordings can be viewed while they grow: what is shown before they're read completely is final.
struct GrowingTests {
  /// A slice served while the waveform was growing.
  private struct Sight {
    let data: [UInt8]
    let available: Int
  }

  /// How often a test must see a job in progress for its verdict to mean something. An idle machine looks twenty times
  /// or more; a busy one wakes the test late, which says nothing about the service.
  private static let fewestLooks = 3

  @Test func valuesOfAGrowingWaveformNeverChange() throws {
    let server = try TestServer()
    let client = server.client
    let recording = try client.upload(try LongClip.flac(server.folder), name: "long.flac")
    let (sights, whole) = try watch(
      try #require(recording["id"].string), job: try #require(recording["waveform"]["job"].string), server)
    #expect(whole["total_frames"].int == recording["format"]["frames"].int)
    #expect(sights.count >= Self.fewestLooks, "seen while growing: \(sights.map(\.available))")
    try server.stop()
  }

  // Quick, but in the second tier until it is known why the waveform was once twelve pieces behind, and not nine.
  @Test(.secondTier) func theAvailablePartKeepsUpWithTheProgress() throws {
    let server = try TestServer()
    let client = server.client
    let recording = try client.upload(try LongClip.flac(server.folder), name: "long.flac")
    let id = try #require(recording["id"].string)
    let duration = try #require(recording["format"]["duration"].double)
    let path = "/v1/recordings/\(id)/waveform?channels=split&measures=peak,rms,average"
    let scales = [256, 1000, 4096, 65_536]
    var (served, steps): ([Int: [String: [Int]]], Set<Double>) = ([:], [])
    try client.succeed(try #require(recording["waveform"]["job"].string)) { _ in
      try server.holdingWorkers {
        let waveform = try client.recording(id)["waveform"]
        guard waveform["state"].string == "building" else { return }
        let (progress, available) = (
          try #require(waveform["progress"].double), try #require(waveform["available"].double)
        )
        // What has been read is written by another thread, which is nine pieces behind at most (65,536 samples of
        // stereo each), however long the recording is.
        let piece = 32_768 / Double(LongClip.rate)
        #expect(abs(available - progress * duration) < 9.5 * piece, "\(available) of \(duration) s at \(progress)")
        // Every step is checked, and every fourth in detail.
        guard steps.insert(progress).inserted, steps.count % 4 == 1 else { return }
        for scale in scales {
          // The last available second: whatever was added since the last look is in one of them.
          let slice = try client.get("\(path)&scale=\(scale)&start=\(max(available - 1, 0))").json
          guard slice["complete"] == .bool(false) else { continue }
          served[scale, default: [:]]["\(try #require(slice["start_frame"].int))"] = slice["data"].integers
        }
      }
    }
    #expect(steps.count >= Self.fewestLooks, "seen at \(steps.sorted())")
    for scale in scales {
      #expect(served[scale]?.isEmpty == false)
      for (start, data) in served[scale] ?? [:] {
        let seconds = Double(try #require(Int(start))) / Double(LongClip.rate)
        // Two channels, two values each.
        let end = seconds + Double((data.count / 4 + 1) * scale) / Double(LongClip.rate)
        let whole = try client.get("\(path)&scale=\(scale)&start=\(seconds)&end=\(end)").json["data"].integers
        let isKept = whole?.starts(with: data) ?? false
        #expect(isKept, "scale \(scale) from frame \(start)")
      }
    }
    try server.stop()
  }

  @Test func aResultsWaveformGrowsAndItsAudioComesAtTheEnd() throws {
    let server = try TestServer()
    let client = server.client
    let source = try client.uploadReady(LongClip.wave())
    let id = try #require(source["id"].string)
    let job = try client.denoise(id, #"{"noise":{"start":1,"end":3}}"#)
    let output = try #require(job["result"]["recording"].string)

    // It's listed from the first answer on, as unfinished.
    let made = try client.recording(output)
    #expect(made["bytes"] == .null && made["sha256"] == .null)
    #expect(made["waveform"]["job"] == job["id"] && made["format"]["frames"] == source["format"]["frames"])
    #expect(try client.get("/v1/recordings").json["recordings"][0]["id"].string == output)
    expectProblem(try client.get("/v1/recordings/\(output)/audio"), 409, "not_ready")
    expectProblem(try client.post("/v1/recordings/\(output)/denoise", json: "{}"), 409, "not_ready")

    var (fractions, remaining): (Set<Double>, [Double]) = ([], [])
    let (sights, whole) = try watch(output, job: try #require(job["id"].string), server) { document in
      fractions.insert(document["progress"].double ?? 0)
      if let eta = document["eta"].double { remaining.append(eta) }
    }
    #expect(
      fractions.count >= Self.fewestLooks && !remaining.isEmpty, "progress \(fractions.sorted()), eta \(remaining)")
    #expect(remaining.allSatisfy { $0 >= 0 && $0 < 600 })
    #expect(sights.count >= Self.fewestLooks)
    #expect(whole["total_frames"] == source["format"]["frames"])
    let finished = try client.recording(output)
    let audio = try client.get("/v1/recordings/\(output)/audio")
    #expect(audio.status == 200 && audio.body.count == finished["bytes"].int)
    #expect(try WAVFile(reading: audio.body).frames == source["format"]["frames"].int)
    try server.stop()
  }

  /// Requests the same slice after every step of the job until it has succeeded. Returns what was seen before the end,
  /// which must be the beginning of the whole, and the whole.
  private func watch(
    _ id: String, job: String, _ server: TestServer, seen: (JSON) -> Void = { _ in }
  ) throws -> ([Sight], JSON) {
    let client = server.client
    let target = "/v1/recordings/\(id)/waveform.dat?scale=4096&channels=split"
    let headBytes = 24
    var sights: [Sight] = []
    try client.succeed(job) { document in
      seen(document)
      let answer = try server.holdingWorkers { try client.get(target) }
      guard answer["stillwave-complete"] == "false" else { return }
      #expect(answer["cache-control"] == "no-store" && answer["etag"] == nil)
      let available = try #require(answer["stillwave-available-frames"].flatMap { Int($0) })
      #expect(available >= sights.last?.available ?? 0)
      // Only pixels whose frames have all been read.
      let channels = Int(answer.body[20])
      #expect((answer.body.count - headBytes) / (4 * channels) == available / 4096)
      if available > sights.last?.available ?? 0 {
        sights.append(Sight(data: Array(answer.body.dropFirst(headBytes)), available: available))
      }
    }
    let whole = try client.get(target)
    #expect(whole["stillwave-complete"] == "true" && whole["etag"] != nil)
    for sight in sights {
      #expect(
        whole.body.dropFirst(headBytes).starts(with: sight.data),
        "served at \(sight.available) frames, and other in the end")
    }
    let document = try client.get("/v1/recordings/\(id)/waveform?width=100").json
    #expect(document["complete"] == .bool(true) && document["available_frames"] == document["total_frames"])
    return (sights, document)
  }
}
