import Foundation
import Testing

/// Fragments of broadcasts and discs: the rest of a stream that was cut somewhere.
@Suite(.serialized) struct CutStreamTests {
  /// The part that is cut off.
  enum Cut {
    /// Everything up to the second packet of pictures; their size is lost with the first.
    case size
    /// Everything up to the first pack after this many bytes.
    case packs(Int)
    /// This many bytes.
    case bytes(Int)

    func callAsFunction(_ file: [UInt8]) throws -> [UInt8] {
      switch self {
      case .size:
        // The second packet with pictures (number 256) that begins one.
        let begins = stride(from: 0, to: file.count - 187, by: 188).filter { place in
          file[place + 1] & 0x5F == 0x41 && file[place + 2] == 0
        }
        try #require(begins.count > 2)
        return Array(file[begins[1]...])
      case .packs(let count):
        let place = (count..<file.count - 4).first { file[$0..<$0 + 4].elementsEqual([0, 0, 1, 0xBA]) }
        return Array(file[try #require(place)...])
      case .bytes(let count): return Array(file.dropFirst(count))
      }
    }
  }

  struct Piece: Sendable, CustomTestStringConvertible {
    let testDescription, file: String
    let words: [String]
    let cut: Cut
    var leads = false
  }

  private static let disc = ["-c:v", "mpeg2video", "-c:a", "mp2", "-ar", "48000"]
  static let pieces = [
    Piece(
      testDescription: "TS without the pictures' size", file: "size.ts",
      words: ["-c", "copy", "-output_ts_offset", "3600"], cut: .size),
    Piece(testDescription: "PS from a later pack on", file: "later.mpg", words: disc, cut: .packs(20_000)),
    Piece(testDescription: "PS from its second pack on", file: "next.mpg", words: disc, cut: .packs(100)),
    Piece(
      testDescription: "PS from within a pack on", file: "within.mpg", words: disc, cut: .bytes(12_345), leads: true),
    Piece(testDescription: "PS from its second byte on", file: "second.mpg", words: disc, cut: .bytes(1), leads: true),
  ]

  @Test("in a cleaned fragment, the offset between sound and pictures is unchanged", .secondTier, arguments: pieces)
  func piece(_ piece: Piece) throws {
    let server = try TestServer()
    let (client, material) = (server.client, try PositionRow.Material(in: server.folder))
    let whole = server.folder.file("whole-" + piece.file)
    try Tool.ffmpeg.run(["-v", "error", "-y", "-i", material.film] + piece.words + [whole])
    let path = server.folder.file(piece.file)
    try write(piece.cut(contents(whole)), to: path)

    let recording = try client.uploadReady(contents(path), name: piece.file)
    #expect((recording["video"]["width"].int == nil) == (piece.file == "size.ts"))
    let codes = recording["warnings"].array?.compactMap { $0["code"].string } ?? []
    #expect(codes.contains("leading_bytes") == piece.leads, "\(codes)")
    let id = try #require(recording["id"].string)
    let wav = server.folder.file("converted.wav")
    try write(try client.conversion("/v1/recordings/\(id)/audio?format=wav").body, to: wav)
    let job = try client.denoise(id, MediaClip.cleaning)
    try client.succeed(try #require(job["id"].string))
    let (other, cleaned) = (try #require(job["result"]["recording"].string), server.folder.file("c-" + piece.file))
    try write(try client.get("/v1/recordings/\(other)/audio").body, to: cleaned)

    let table = PositionTableTests()
    // In each of these, sound comes before the pictures.
    try Self.expectNear(table.beeps(in: wav, onClock: false), table.beeps(in: path, onClock: false))
    try Self.expectNear(table.beeps(in: cleaned, onClock: true), table.beeps(in: path, onClock: true))
    let times = try (table.pictureTimes(path), table.pictureTimes(cleaned))
    #expect(times.0.first == times.1.first && times.0.count == times.1.count)
    if piece.file.hasSuffix("ts") { #expect(times.0 == times.1) }
  }

  /// Within a millisecond.
  private static func expectNear(_ found: [Double], _ expected: [Double]) {
    #expect(zip(found, expected).allSatisfy { ($0 - $1).magnitude < 0.001 }, "\(found) \(expected)")
  }
}
