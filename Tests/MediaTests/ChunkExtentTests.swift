import Foundation
import Terms
import Testing

@testable import Media

/// Whether files made of chunks end where their sizes say.
struct ChunkExtentTests {
  private func extent(_ bytes: [UInt8], _ demuxer: Demuxer) throws -> ChunkExtent {
    try withFile(bytes) { ChunkExtent(path: $0, demuxer) }
  }

  private func withFile<R>(_ bytes: [UInt8], _ body: (String) throws -> R) throws -> R {
    let path = NSTemporaryDirectory() + "stillwave-chunks-\(UUID().uuidString)"
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try body(path)
  }

  private static let riff = Array("RIFF".utf8) + [5, 0, 0, 0, 1, 2, 3, 4, 5, 0]
  /// A pack header of MPEG-2 with three stuffing bytes, and a packet of sound.
  private static let pack: [UInt8] =
    [0, 0, 1, 0xBA, 0x44, 0, 4, 0, 4, 1, 0, 0, 3, 0xFB, 0xFF, 0xFF, 0xFF, 0, 0, 1, 0xC0, 0, 4, 1, 2, 3, 4]
  private static let bluRay = [UInt8]([[9, 9, 9, 9, 0x47, 0, 0, 0x10], [UInt8](repeating: 0, count: 184)].joined())

  @Test(
    "a file is whole if its last chunk ends with it, and cut if it ends before",
    arguments: [
      (.wav, riff + riff), (.mpeg, pack + pack), (.mpegts, bluRay + bluRay + bluRay),
      (.flv, Array("FLV\u{1}".utf8) + [4, 0, 0, 0, 9, 0, 0, 0, 0, 8, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7, 7, 0, 0, 0, 13]),
      (.wv, Array("wvpk".utf8) + [12, 0, 0, 0] + [UInt8](repeating: 1, count: 12)),
    ] as [(Demuxer, [UInt8])])
  func extent(demuxer: Demuxer, bytes: [UInt8]) throws {
    #expect(try extent(bytes, demuxer) == .whole)
    #expect(try extent(bytes.dropLast(2), demuxer) == .cut)
  }

  @Test("the length of Musepack is what its header says, without the silence at the start")
  func musepack() throws {
    let seventh = Array("MP+\u{7}".utf8) + [3, 1, 0, 0]
    #expect(try withFile(seventh) { MusepackLength.samples(path: $0) } == 259 * 1152)
    let eighth = Array("MPCKSH".utf8) + [15, 0, 0, 0, 0, 8, 0x87, 0x68, 100, 0, 0, 0]
    #expect(try withFile(eighth) { MusepackLength.samples(path: $0) } == 900)
  }
}
