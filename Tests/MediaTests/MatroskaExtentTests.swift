import Foundation
import Testing

@testable import Media

/// Whether a Matroska file is complete, according to its sizes.
struct MatroskaExtentTests {
  private static let header: [UInt8] = [0x1A, 0x45, 0xDF, 0xA3, 0x82, 1, 2]
  private static let segment: [UInt8] = [0x18, 0x53, 0x80, 0x67]
  private static let cluster: [UInt8] = [0x1F, 0x43, 0xB6, 0x75]
  private static let open: [UInt8] = [0x01, 255, 255, 255, 255, 255, 255, 255]
  private static let block: [UInt8] = [0xA3, 0x84, 1, 2, 3, 4]

  static let cases: [(String, [UInt8], MatroskaExtent)] = [
    ("a segment of known size", header + segment + [0x86] + block, .whole),
    ("one of which a byte is missing", header + segment + [0x87] + block, .cut),
    ("open sizes, ending with a block", header + segment + open + cluster + open + block + block, .whole),
    ("open sizes in one byte", header + segment + [0xFF] + cluster + [0xFF] + block, .whole),
    ("open sizes, ending within a block", header + segment + open + cluster + open + block + block.dropLast(), .cut),
    ("an end within an element's size", header + segment + open + cluster + [0x01, 255], .cut),
    ("a size beyond all bounds", header + segment + [0x01, 255, 255, 255, 255, 255, 255, 254], .cut),
    ("an element that may not be open", header + segment + open + [0xA3, 0xFF], .unknown),
    ("no Matroska", [0, 0, 0, 20] + Array("ftypisomftypisomftypisom".utf8), .unknown),
    ("nothing", [], .whole),
  ]

  @Test("a file that ends within an element is cut", arguments: cases)
  func extent(_ name: String, bytes: [UInt8], extent: MatroskaExtent) throws {
    let path = NSTemporaryDirectory() + "stillwave-matroska-\(UUID().uuidString).mkv"
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(MatroskaExtent(path: path) == extent)
  }
}
