import Foundation
import Testing

@testable import Sounds

/// A phone's mov exceeds what 31 and 32 bits can count; its size affects the disk, not memory.
@Suite(.serialized) struct LargeMediaTests {
  /// Bytes before the samples; as phones do it, the index comes after them.
  private static let padding = 1 << 31
  private static let allowedKilobytes = 16 << 10

  /// A video after a box of `padding` zeros (a hole in the file), which players skip, and the same video without it.
  private func film(in folder: TemporaryFolder) throws -> (path: String, small: String) {
    let plain = try MediaUploadTests.videos[1].0.make(in: folder)
    let small = folder.file("small.mov")
    try Tool.ffmpeg.run(["-v", "error", "-i", plain, "-c", "copy", small])
    var data = Data(try contents(small))
    let (samples, index) = (try boxStart("mdat", data), try boxStart("moov", data))
    try #require(index > samples)
    try move(chunksIn: &data, from: index, by: Self.padding)
    let path = folder.file("large.mov")
    _ = FileManager.default.createFile(atPath: path, contents: nil)
    let file = try #require(FileHandle(forWritingAtPath: path))
    let size = UInt32(Self.padding)
    try file.write(contentsOf: data[..<samples])
    try file.write(
      contentsOf: Data((0..<4).map { UInt8(truncatingIfNeeded: size >> (24 - 8 * $0)) } + Array("free".utf8)))
    try file.seek(toOffset: UInt64(samples + Self.padding))
    try file.write(contentsOf: data[samples...])
    try file.close()
    return (path, small)
  }

  /// The position of the first box with this name.
  private func boxStart(_ name: String, _ data: Data) throws -> Int {
    try #require(data.range(of: Data(name.utf8))).lowerBound - 4
  }

  /// Adds `distance` to every offset in the index's tables.
  private func move(chunksIn data: inout Data, from index: Int, by distance: Int) throws {
    var rest = index..<data.count
    while let table = data.range(of: Data("stco".utf8), in: rest) {
      func number(at offset: Int) -> UInt32 { data[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) } }
      for entry in 0..<Int(number(at: table.upperBound + 4)) {
        let offset = table.upperBound + 8 + 4 * entry
        let moved = number(at: offset) + UInt32(distance)
        data.replaceSubrange(
          offset..<offset + 4, with: (0..<4).map { UInt8(truncatingIfNeeded: moved >> (24 - 8 * $0)) })
      }
      rest = table.upperBound..<data.count
    }
  }

  /// Makes the padding of the stored film a hole again, so that the film and its cleaned copy fit on a small disk
  /// beside what other tests store.
  private func releasePadding(of id: String, on server: TestServer) throws {
    let film = server.data + "/recordings/\(id)/audio.mov"
    // What is before and after the padding takes less than a MiB.
    try Tool.fallocate.run(["--punch-hole", "-o", "\(1 << 20)", "-l", "\(Self.padding - (2 << 20))", film])
  }

  private func packets(_ path: String) throws -> [String] {
    try ffmpegLines(["-i", path, "-map", "0:v", "-c", "copy", "-f", "framecrc", "-"]).filter { !$0.hasPrefix("#") }
      .map { $0.split(separator: ",").dropFirst(4).prefix(2).joined() }
  }

  @Test("a 2 GB mov is read, shown, and cleaned like a small one, in as little memory", .secondTier)
  func film() throws {
    let server = try TestServer()
    let (path, small) = try film(in: server.folder)
    let file = try #require(FileHandle(forReadingAtPath: path))
    let length = Int(try file.seekToEnd())
    try file.seek(toOffset: 0)
    _ = try server.client.uploadReady(Clip.tone.bytes)
    let before = Processes.anonymousKilobytes(of: server.processID)
    var highest = before
    let answer = try server.client.send(
      "POST", "/v1/recordings?name=large.mov", [:],
      .pieces(length: length) {
        guard let piece = try? file.read(upToCount: 4 << 20), !piece.isEmpty else { return nil }
        highest = max(highest, Processes.anonymousKilobytes(of: server.processID))
        return Array(piece)
      })
    try #require(answer.status == 201, "\(answer.text)")
    let id = try #require(answer.json["id"].string)
    try releasePadding(of: id, on: server)
    try server.client.succeed(try #require(answer.json["waveform"]["job"].string))
    let recording = try server.client.recording(id)
    #expect(recording["bytes"].int == length && recording["warnings"] == .array([]))
    #expect(abs(try #require(recording["format"]["duration"].double) - MediaClip.seconds) < 0.001)
    for beep in try server.client.beeps(in: id, near: [1, 4]) { #expect(abs(beep - beep.rounded()) < 0.001, "\(beep)") }

    for range in [Self.padding - 2...Self.padding + 5000, length - 100...length - 1] {
      let part = try server.client.get(
        "/v1/recordings/\(id)/video", ["Range": "bytes=\(range.lowerBound)-\(range.upperBound)"])
      #expect(part.status == 206)
      #expect(part["content-range"] == "bytes \(range.lowerBound)-\(range.upperBound)/\(length)")
      try file.seek(toOffset: UInt64(range.lowerBound))
      #expect(try file.read(upToCount: range.count) == Data(part.body))
    }
    let cleaned = try #require(try server.client.cleaned(id)["id"].string)
    // ffmpeg asks for ranges, so that no copy fills memory or the disk.
    #expect(try packets("http://127.0.0.1:\(server.client.port)/v1/recordings/\(cleaned)/video") == packets(small))
    highest = max(highest, Processes.anonymousKilobytes(of: server.processID))
    #expect(highest - before < Self.allowedKilobytes, "\(before) KB before, \(highest) KB at its highest")
    for one in [id, cleaned] { #expect(try server.client.delete("/v1/recordings/\(one)").status == 204) }
  }
}
