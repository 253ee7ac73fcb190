import Foundation
import Testing

@testable import Media

/// Whether an MP4 file is complete, according to its sizes.
struct BoxExtentTests {
  private static let type: [UInt8] = [0, 0, 0, 16] + Array("ftypisom".utf8) + [0, 0, 0, 0]

  static let cases: [(String, [UInt8], BoxExtent.Verdict)] = [
    ("boxes that end with the file", type + [0, 0, 0, 12] + Array("mdat".utf8) + [1, 2, 3, 4], .whole),
    ("a box of which a byte is missing", type + [0, 0, 0, 13] + Array("mdat".utf8) + [1, 2, 3, 4], .cut),
    ("a box that reaches to the end", type + [0, 0, 0, 0] + Array("mdat".utf8) + [1, 2], .whole),
    ("a long size", type + [0, 0, 0, 1] + Array("mdat".utf8) + [0, 0, 0, 0, 0, 0, 0, 18, 1, 2], .whole),
    (
      "a long size of more than there is", type + [0, 0, 0, 1] + Array("mdat".utf8) + [255, 0, 0, 0, 0, 0, 0, 18], .cut
    ),
    ("an end within a long size", type + [0, 0, 0, 1] + Array("mdat".utf8) + [0, 0, 0], .cut),
    ("an end within a size", type + [0, 0, 0], .cut),
    ("a size below the least", type + [0, 0, 0, 7] + Array("mdat".utf8), .unknown),
    ("a camera's own bytes behind the boxes", type + Array("SEFHe\u{0}\u{0}\u{0}".utf8), .unknown),
    ("nothing", [], .whole),
    ("a fragment", type + [0, 0, 0, 8] + Array("moof".utf8) + [0, 0, 0, 8] + Array("mdat".utf8), .whole),
  ]

  @Test("a file that ends within a box is cut", arguments: cases)
  func extent(_ name: String, bytes: [UInt8], extent: BoxExtent.Verdict) throws {
    let path = NSTemporaryDirectory() + "stillwave-boxes-\(UUID().uuidString).mp4"
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    let found = BoxExtent(path: path)
    #expect(found.verdict == extent && found.isFragmented == (name == "a fragment"))
  }
}
