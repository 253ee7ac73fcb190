import Testing

@testable import Sounds

/// Numbers in clients' spellings, on their way to the workers' command lines.
struct NumberTests {
  private static let zeros = ["0", "-0", "-0.0", "-0e5", "1e-400", "-1e-400", "1e-320", "1e-7"]

  @Test("zero in any spelling and tiny numbers are accepted everywhere")
  func zeros() throws {
    let server = try TestServer()
    let client = server.client
    let id = try #require(try client.uploadReady(WAVFile.noise(seconds: 2, seed: 1))["id"].string)
    let path = "/v1/recordings/\(id)"
    for zero in Self.zeros {
      for query in [
        "/spectrum?start=\(zero)&end=1", "/waveform?start=\(zero)&end=1", "/waveform.png?start=\(zero)&end=1&width=20",
        "/waveform.dat?start=\(zero)&end=1", "/peaks.json?start=\(zero)&end=1",
      ] {
        let answer = try client.get(path + query)
        #expect(answer.status == 200, "\(query): \(answer.text)")
      }
      let members = """
        "noise":{"start":\(zero),"end":1},"reduction":\(zero)
        """
      let preview = try client.post(
        path + "/denoise/preview", json: "{\(members),\"window\":{\"start\":\(zero),\"end\":1}}")
      #expect(preview.status == 200, "\(zero): \(preview.text)")
    }
    // The jobs' children accept the same text.
    for zero in ["-0", "1e-320"] {
      let job = try client.denoise(id, #"{"noise":{"start":\#(zero),"end":1},"reduction":\#(zero)}"#)
      try client.succeed(try #require(job["id"].string))
    }
    let plain = try client.get(path + "/spectrum?start=0&end=1")
    #expect(try client.get(path + "/spectrum?start=-0&end=1")["etag"] == plain["etag"])
    try server.stop()
  }

  @Test(
    "invalid numbers are rejected as the client's fault",
    arguments: [
      "spectrum?start=1e400&end=1", "spectrum?start=-1e-320&end=1", "spectrum?start=0&end=1e308",
      "spectrum?start=0x0&end=1", "spectrum?start=%2D%2D0&end=1", "waveform?width=-0", "waveform?width=1e2",
      "waveform?scale=1.0", "waveform?start=nan", "waveform.png?height=-0", "waveform.png?pixel_ratio=-0",
      "waveform.png?amplitude_scale=-0", "noise-regions?limit=-0",
    ])
  func refused(query: String) throws {
    let server = try TestServer()
    let id = try #require(try server.client.uploadReady(BadUploadTests.tone.bytes)["id"].string)
    let answer = try server.client.get("/v1/recordings/\(id)/\(query)")
    #expect(answer.status == 400 || answer.status == 422, "\(answer.status) \(answer.text)")
    try server.stop()
  }
}
