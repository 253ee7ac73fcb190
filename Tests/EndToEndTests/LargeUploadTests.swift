import Testing

@testable import Sounds

/// The size of an upload affects the disk, not memory.
@Suite(.serialized)
struct LargeUploadTests {
  private static let bytes = 512 << 20
  private static let allowedKilobytes = 16 << 10

  @Test(arguments: ["with a length", "chunked"])
  func halfAGigabyteCostsTheServiceHardlyAnyMemory(_ kind: String) throws {
    let server = try TestServer()
    // One-time allocations of the first upload aren't counted.
    let small = try server.client.uploadReady(Clip.tone.bytes)
    #expect(small["waveform"]["state"] == .string("ready"))
    let before = Processes.anonymousKilobytes(of: server.processID)
    #expect(before > 0)

    var file = WAVFile()
    file.claimedBytes = UInt32(Self.bytes - 44)
    var rest = Self.bytes
    var highest = before
    let silence = [UInt8](repeating: 0, count: 1 << 20)
    let answer = try server.client.send(
      "POST", "/v1/recordings?name=silence.wav", [:],
      .pieces(length: kind == "chunked" ? nil : Self.bytes) {
        guard rest > 0 else { return nil }
        if rest % (8 << 20) == 0 { highest = max(highest, Processes.anonymousKilobytes(of: server.processID)) }
        let piece = rest == Self.bytes ? file.header + silence.dropFirst(44) : silence
        rest -= piece.count
        return piece
      })
    try #require(answer.status == 201, "\(answer.text)")
    #expect(answer.json["bytes"].int == Self.bytes && answer.json["warnings"] == .array([]))
    highest = max(highest, Processes.anonymousKilobytes(of: server.processID))
    let id = try #require(answer.json["id"].string)
    #expect(try server.client.delete("/v1/recordings/\(id)").status == 204)
    highest = max(highest, Processes.anonymousKilobytes(of: server.processID))
    #expect(highest - before < Self.allowedKilobytes, "\(before) KB before, \(highest) KB at its highest")
  }
}
