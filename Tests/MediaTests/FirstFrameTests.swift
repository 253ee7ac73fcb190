import Foundation
import Randomness
import Terms
import Testing

@testable import Media

/// Where raw AAC and AC-3 begin, and data that only looks like them.
struct FirstFrameTests {
  private func found(_ bytes: [UInt8]) throws -> FirstFrame? {
    let path = NSTemporaryDirectory() + "stillwave-frames-\(UUID().uuidString)"
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try FirstFrame(#require(FileStart(path: path)))
  }

  /// Returns frames of 100 bytes: AAC at 44.1 kHz.
  private static func adts(_ count: Int) -> [UInt8] {
    let header: [UInt8] = [0xFF, 0xF1, 0x50, 0x80, 100 >> 3, (100 & 7) << 5 | 0x1F, 0xFC]
    return (0..<count).flatMap { _ in header + [UInt8](repeating: 7, count: 93) }
  }

  /// Returns frames of 64 words: AC-3 at 48 kHz and 32 kbit/s.
  private static func ac3(_ count: Int) -> [UInt8] {
    (0..<count).flatMap { _ in [0x0B, 0x77, 1, 2, 0, 8 << 3] + [UInt8](repeating: 7, count: 122) }
  }

  @Test("the first frame is found after other bytes", arguments: [0, 1, 37, 5000, 65_535])
  func behind(_ count: Int) throws {
    let front = [UInt8](repeating: 0, count: count)
    #expect(try found(front + Self.adts(3))?.leadingBytes == count)
    #expect(try found(front + Self.ac3(3))?.leadingBytes == count)
    #expect(try found(front + Self.ac3(3))?.demuxer == .ac3)
    #expect(try found(Array(Self.adts(4).dropFirst(37)))?.leadingBytes == 63)
  }

  @Test("a frame of AC-3 at 44.1 kHz with an odd size is a word longer")
  func oddSize() throws {
    let frame: [UInt8] = [0x0B, 0x77, 1, 2, 1 << 6 | 9, 8 << 3] + [UInt8](repeating: 7, count: 2 * 140 - 6)
    #expect(try found([0, 0] + frame + frame + frame)?.leadingBytes == 2)
  }

  @Test("the three reserved rates of AAC begin no frame", arguments: [12, 13, 14, 15] as [UInt8])
  func rates(rate: UInt8) throws {
    var frames = Self.adts(4)
    for start in stride(from: 0, to: frames.count, by: 100) { frames[start + 2] = 0x40 | rate << 2 }
    #expect(try (found(frames) != nil) == (rate == 12))
  }

  @Test("a single frame counts at the beginning of a file that ends with it or within it")
  func single() throws {
    for frame in [Self.adts(1), Self.ac3(1), Self.adts(1).dropLast(50)] {
      #expect(try found(frame)?.leadingBytes == 0)
      #expect(try found(frame + [UInt8](repeating: 0, count: 200)) == nil)
    }
  }

  @Test("a single frame behind other bytes, and frames further away than 64 KiB, don't count")
  func none() throws {
    #expect(try found([0] + Self.adts(1)) == nil)
    #expect(try found([0] + Self.ac3(1) + [UInt8](repeating: 0, count: 200)) == nil)
    #expect(try found([UInt8](repeating: 0, count: 65_536) + Self.adts(9)) == nil)
    for mark in ["%PDF-1.7\n", "PK\u{3}\u{4}", "RIFF1234WAVE", "MZ", "\u{7F}ELF"] {
      #expect(try found(Array(mark.utf8) + Self.adts(9)) == nil, "\(mark)")
    }
  }

  @Test("random bytes are not recognized as any format")
  func random() throws {
    var random = TestRandom(for: 312)
    let path = NSTemporaryDirectory() + "stillwave-random-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    for _ in 0..<40 {
      let bytes = (0..<9000).flatMap { _ -> [UInt8] in
        let word = random.next()
        return (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
      }
      try Data(bytes).write(to: URL(fileURLWithPath: path))
      #expect(Demuxer(path: path) == nil)
    }
  }

  @Test("pictures, texts, tables, and programs are not recognized as sound")
  func structured() throws {
    let program = try Data(contentsOf: URL(fileURLWithPath: "/proc/self/exe")).prefix(1 << 20)
    let text = Array(String(repeating: "Gg The quick brown fox jumps over the lazy dog.\n", count: 3000).utf8)
    let wide = text.flatMap { [$0, 0] as [UInt8] }
    let pairs = (0..<100_000).map { $0 % 2 == 0 ? UInt8($0 % 9) : 0xFF }
    let others: [[UInt8]] = [
      text, [0xFF, 0xFE] + wide, [UInt8](repeating: 0x47, count: 100_000), [UInt8](repeating: 0xFF, count: 100_000),
      [UInt8](repeating: 0x0B, count: 50_000), (0..<100_000).map { UInt8(truncatingIfNeeded: $0) },
      pairs,
      Array(program), Array(program.dropFirst(20_000)),
    ]
    for (number, bytes) in others.enumerated() {
      let path = NSTemporaryDirectory() + "stillwave-other-\(UUID().uuidString)"
      try Data(bytes).write(to: URL(fileURLWithPath: path))
      defer { try? FileManager.default.removeItem(atPath: path) }
      #expect(Demuxer(path: path) == nil, "\(number)")
    }
  }
}
