import Foundation
import Testing

@testable import Media

/// The length of an AMR file, derived from its frames.
struct AMRExtentTests {
  private static let narrow = Array("#!AMR\n".utf8)
  private static let wide = Array("#!AMR-WB\n".utf8)

  /// Returns a frame of the given type, with `size` bytes after the first one.
  private static func frame(_ kind: UInt8, _ size: Int) -> [UInt8] {
    [kind << 3 | 4] + [UInt8](repeating: 0xFF, count: size)
  }

  /// Frames, frames of silence, and whether the last one is cut; nil if the file isn't understood.
  static let cases: [(String, [UInt8], (Int64, Int64, Bool)?)] = [
    ("the mark alone", narrow, (0, 0, false)),
    ("12.2 kbit/s", narrow + frame(7, 31) + frame(7, 31), (2, 0, false)),
    ("4.75 kbit/s", narrow + frame(0, 12), (1, 0, false)),
    ("a pause", narrow + frame(7, 31) + frame(8, 5) + frame(15, 0) + frame(15, 0) + frame(7, 31), (5, 3, false)),
    ("wideband", wide + frame(8, 60) + frame(9, 5) + frame(14, 0) + frame(0, 17), (4, 2, false)),
    ("an end within a frame", narrow + frame(7, 31) + frame(7, 30), (1, 0, true)),
    ("an end behind a frame's first byte", narrow + frame(7, 31) + frame(7, 0), (1, 0, true)),
    ("more than is read at a time", narrow + (0..<5000).flatMap { _ in frame(7, 31) }, (5000, 0, false)),
    ("more frames than anybody speaks", narrow + [UInt8](repeating: 0x7C, count: 20_000), (10_000, 10_000, false)),
    ("a kind that there is not", narrow + frame(7, 31) + frame(12, 0), nil),
    ("several channels", Array("#!AMR_MC1.0\n".utf8) + frame(7, 31), nil),
    ("nothing", [], nil),
  ]

  @Test("the frames of an AMR file determine its length", arguments: cases)
  func extent(_ name: String, bytes: [UInt8], expected: (Int64, Int64, Bool)?) throws {
    let path = NSTemporaryDirectory() + "stillwave-amr-\(UUID().uuidString).amr"
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    let found = AMRExtent(path: path, frameLimit: 10_000)
    #expect(found?.frames == expected?.0 && found?.silentFrames == expected?.1 && found?.isCut == expected?.2)
  }
}
