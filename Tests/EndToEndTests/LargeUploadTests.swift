import Testing

@testable import Sounds

/// The size of an upload affects the disk, not memory.
@Suite(.serialized)
struct LargeUploadTests {
  private static let bytes = 512 << 20
  private static let allowedKilobytes = 16 << 10

  @Test(arguments: ["with a length", "chunked", "resumable"])
  func halfAGigabyteCostsTheServiceHardlyAnyMemory(_ kind: String) throws {
    let server = try TestServer()
    let client = server.client
    // One-time allocations of the first upload aren't counted.
    let small = try client.uploadReady(Clip.tone.bytes)
    #expect(small["waveform"]["state"] == .string("ready"))
    let before = Processes.anonymousKilobytes(of: server.processID)
    #expect(before > 0)

    var file = WAVFile()
    file.claimedBytes = UInt32(Self.bytes - 44)
    var rest = Self.bytes
    var highest = before
    let silence = [UInt8](repeating: 0, count: 1 << 20)
    func send(_ method: String, _ target: String, _ fields: [String: String], _ length: Int?) throws -> Answer {
      try client.send(
        method, target, fields,
        .pieces(length: length) {
          guard rest > 0 else { return nil }
          if rest % (8 << 20) == 0 { highest = max(highest, Processes.anonymousKilobytes(of: server.processID)) }
          let piece = rest == Self.bytes ? file.header + silence.dropFirst(44) : silence
          rest -= piece.count
          return piece
        })
    }
    let id: String
    if kind == "resumable" {
      let tus = ["Tus-Resumable": "1.0.0", "Upload-Length": "\(Self.bytes)"]
      let upload = try #require(try client.send("POST", "/v1/uploads", tus)["location"])
      let fields = [
        "Tus-Resumable": "1.0.0", "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream",
      ]
      let answer = try send("PATCH", upload, fields, Self.bytes)
      id = try #require(answer["stillwave-recording"], "\(answer.text)")
    } else {
      let answer = try send(
        "POST", "/v1/recordings?name=silence.wav", [:], kind == "chunked" ? nil : Self.bytes)
      try #require(answer.status == 201, "\(answer.text)")
      #expect(answer.json["bytes"].int == Self.bytes && answer.json["warnings"] == .array([]))
      id = try #require(answer.json["id"].string)
    }
    highest = max(highest, Processes.anonymousKilobytes(of: server.processID))
    #expect(try client.delete("/v1/recordings/\(id)").status == 204)
    highest = max(highest, Processes.anonymousKilobytes(of: server.processID))
    #expect(highest - before < Self.allowedKilobytes, "\(before) KB before, \(highest) KB at the most")
  }
}
