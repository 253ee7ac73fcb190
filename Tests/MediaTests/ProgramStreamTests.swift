import Foundation
import Terms
import Testing

@testable import Media

/// Pieces of program streams.
struct ProgramStreamTests {
  private static let pack: [UInt8] = [0, 0, 1, 0xBA, 0x44, 0, 4, 0, 4, 1, 0, 0, 3, 0xF8]
  private static let oldPack: [UInt8] = [0, 0, 1, 0xBA, 0x21, 0, 1, 0, 1, 0x80, 0, 1]
  private static let packet: [UInt8] = [0, 0, 1, 0xC0, 0, 100] + [UInt8](repeating: 7, count: 100)

  private func begin(_ bytes: [UInt8]) throws -> Int? {
    let path = NSTemporaryDirectory() + "stillwave-piece-\(UUID().uuidString)"
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    let start = try #require(FileStart(path: path))
    #expect(Demuxer(start) == (ProgramStream.begin(start) == nil ? nil : .mpeg))
    return ProgramStream.begin(start)
  }

  @Test("a piece begins with the first complete packet before a pack, or with that pack", arguments: [pack, oldPack])
  func found(_ pack: [UInt8]) throws {
    let stream = (0..<5).flatMap { _ in pack + Self.packet + Self.packet }
    #expect(try begin(stream) == 0)
    #expect(try begin(Array(stream.dropFirst(1))) == pack.count - 1)
    #expect(try begin(Array(stream.dropFirst(pack.count + 1))) == Self.packet.count - 1)
    #expect(try begin(Array(stream.dropFirst(pack.count + Self.packet.count + 50))) == Self.packet.count - 50)
    #expect(try begin([UInt8](repeating: 9, count: 65_000) + stream) == 65_000)
  }

  @Test("a pack's mark alone, far away, or in an archive is not a program stream")
  func none() throws {
    let stream = (0..<5).flatMap { _ in Self.pack + Self.packet }
    #expect(try begin([9] + Self.pack + [UInt8](repeating: 9, count: 500)) == nil)
    #expect(try begin([9, 0, 0, 1, 0xBA] + [UInt8](repeating: 0, count: 500)) == nil)
    #expect(try begin([9] + Self.pack + [0, 0, 1, 0xC0, 0, 10] + [UInt8](repeating: 9, count: 500)) == nil)
    #expect(try begin([UInt8](repeating: 9, count: 65_537) + stream) == nil)
    #expect(try begin([0x50, 0x4B, 3, 4] + stream) == nil)
    #expect(try begin([]) == nil)
  }
}
