import Foundation
import Testing

@testable import Sounds

/// Uploads in pieces over broken connections and killed services: reported bytes stay, and the result is a single
/// recording.
struct ResumableUploadTests {
  static let bytes = Clip.tone.bytes

  fileprivate struct Upload {
    let server: TestServer
    let path: String

    init(_ server: TestServer, length: Int = bytes.count) throws {
      self.server = server
      let answer = try server.client.send(
        "POST", "/v1/uploads",
        ["Tus-Resumable": "1.0.0", "Upload-Length": "\(length)", "Upload-Metadata": "filename dG9uZS53YXY="])
      try #require(answer.status == 201, "\(answer.text)")
      path = try #require(answer["location"])
    }

    func head() throws -> Answer { try server.client.send("HEAD", path, ["Tus-Resumable": "1.0.0"]) }

    func offset() throws -> Int {
      let answer = try head()
      try #require(answer.status == 200)
      return try #require(answer["upload-offset"].flatMap { Int($0) })
    }

    func patch(_ offset: Int, _ bytes: [UInt8]) throws -> Answer {
      try server.client.send("PATCH", path, Self.fields(offset), .bytes(bytes))
    }

    static func fields(_ offset: Int) -> [String: String] {
      [
        "Tus-Resumable": "1.0.0", "Upload-Offset": "\(offset)", "Content-Type": "application/offset+octet-stream",
      ]
    }

    /// Sends a PATCH that announces all of the rest but sends only a part.
    func begin(_ offset: Int, announcing: [UInt8], sending count: Int) throws -> Wire {
      let wire = try Wire(port: server.client.port)
      var fields = Self.fields(offset)
      fields["Host"] = "127.0.0.1"
      fields["Content-Length"] = "\(announcing.count)"
      wire.send("PATCH \(path) HTTP/1.1\r\n" + fields.map { "\($0.key): \($0.value)\r\n" }.joined() + "\r\n")
      wire.send(Array(announcing.prefix(count)))
      return wire
    }

    /// The length of the part on disk.
    func partLength() throws -> Int {
      let name = path.split(separator: "/").last.map(String.init) ?? ""
      let attributes = try? FileManager.default.attributesOfItem(atPath: "\(server.data)/uploads/\(name).part")
      return (attributes?[.size] as? Int) ?? 0
    }

    /// Expects a single recording with the bytes sent.
    func expectWhole(_ answer: Answer) throws {
      #expect(answer["upload-offset"] == "\(bytes.count)")
      let id = try #require(answer["stillwave-recording"])
      #expect(try head()["stillwave-recording"] == id)
      let list = try #require(try server.client.get("/v1/recordings").json["recordings"].array)
      #expect(list.map { $0["id"].string } == [id])
      #expect(list.first?["name"].string == "tone.wav")
      #expect(try server.client.get("/v1/recordings/\(id)/audio").body == bytes)
      try server.client.succeed(try #require(list.first?["waveform"]["job"].string))
    }
  }

  @Test func aReportedOffsetSurvivesACrash() throws {
    let server = try TestServer()
    let upload = try Upload(server)
    #expect(try upload.patch(0, Array(Self.bytes.prefix(1000))).status == 204)
    try server.crash()
    try server.restart()
    #expect(try Upload.again(upload, server).offset() == 1000)
    // Reported by HEAD in the middle of a request that never ends.
    let running = Upload.again(upload, server)
    let wire = try running.begin(1000, announcing: Array(Self.bytes.dropFirst(1000)), sending: 20_000)
    let hasCome = try eventually { try running.offset() == 21_000 }
    #expect(hasCome)
    wire.send(Array(Self.bytes[21_000..<21_500]))
    try server.crash()
    try server.restart()
    let last = Upload.again(upload, server)
    let offset = try last.offset()
    #expect((21_000...21_500).contains(offset))
    try last.expectWhole(try last.patch(offset, Array(Self.bytes.dropFirst(offset))))
  }

  /// The service is killed as soon as the disk shows that the end of the upload has reached this point.
  @Test(arguments: ["the last bytes come", "they are all here", "the recording has a folder", "the part has gone"])
  func aCrashAtTheEndOfAnUploadLeavesOneRecording(_ moment: String) throws {
    let server = try TestServer()
    let upload = try Upload(server)
    #expect(try upload.patch(0, Array(Self.bytes.prefix(40_000))).status == 204)
    let rest = Array(Self.bytes.dropFirst(40_000))
    let wire = try upload.begin(40_000, announcing: rest, sending: rest.count)
    let hasCome = try eventually {
      let names = try server.leftovers()
      switch moment {
      case "the last bytes come": return true
      case "they are all here": return try upload.partLength() != 40_000
      case "the recording has a folder": return names.contains { $0.hasPrefix("recordings/") }
      default: return !names.contains { $0.hasPrefix("uploads/") }
      }
    }
    #expect(hasCome)
    try server.crash()
    wire.close()
    try server.restart()
    let after = Upload.again(upload, server)
    let offset = try after.offset()
    #expect(offset == 40_000 || offset == Self.bytes.count)
    // The client doesn't know if its last request succeeded, so it asks and sends the rest, which may be empty.
    try after.expectWhole(try after.patch(offset, Array(Self.bytes.dropFirst(offset))))
    #expect(try !server.leftovers().contains { $0.hasPrefix("uploads/") })
  }

  @Test func anUploadTakesNoMoreMemoryThanAnother() throws {
    let server = try TestServer()
    _ = try server.client.uploadReady(Self.bytes)
    let before = Processes.anonymousKilobytes(of: server.processID)
    let length = 256 << 20
    let upload = try Upload(server, length: length)
    var file = WAVFile()
    file.claimedBytes = UInt32(length - 44)
    let silence = [UInt8](repeating: 0, count: 1 << 20)
    var (rest, highest) = (length, before)
    let answer = try server.client.send(
      "PATCH", upload.path, Upload.fields(0),
      .pieces(length: length) {
        guard rest > 0 else { return nil }
        if rest % (8 << 20) == 0 { highest = max(highest, Processes.anonymousKilobytes(of: server.processID)) }
        let piece = rest == length ? file.header + silence.dropFirst(44) : silence
        rest -= piece.count
        return piece
      })
    #expect(answer.status == 204 && answer["stillwave-recording"] != nil, "\(answer.text)")
    #expect(highest - before < 16 << 10, "\(before) KB before, \(highest) KB at its highest")
  }
}

extension ResumableUploadTests.Upload {
  /// The same upload after a restart, on another port.
  fileprivate static func again(_ upload: Self, _ server: TestServer) -> Self {
    Self(server: server, path: upload.path)
  }

  private init(server: TestServer, path: String) { (self.server, self.path) = (server, path) }
}
