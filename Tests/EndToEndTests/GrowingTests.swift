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
