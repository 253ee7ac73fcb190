import Foundation

@testable import Sounds

/// A Matroska file with a second of sound and many tags with different names. ffmpeg looks up each among those before
/// it, so the time it takes is quadratic.
enum TaggedMatroska {
  /// 200,000 tags are 7.8 MB.
  static func bytes(tags: Int) -> [UInt8] {
    let header = element(0x1A45_DFA3, element(0x4282, Array("matroska".utf8)) + element(0x4287, [4]))
    let information = element(0x1549_A966, element(0x2A_D7B1, [0x0F, 0x42, 0x40]))
    var simple: [UInt8] = []
    simple.reserveCapacity(tags * 40)
    for number in 0..<tags {
      let digits = String(number)
      let name = String(repeating: "0", count: 12 - digits.count) + digits
      simple += element(
        0x67C8, element(0x45A3, Array("TAG\(name)".utf8)) + element(0x4487, Array("a value of it".utf8)))
    }
    // Placed before the sound, so that any reader has to get past them.
    let list = element(0x1254_C367, element(0x7373, element(0x63C0, []) + simple))
    return header + element(0x1853_8067, information + tracks + list + cluster)
  }

  /// One track of 16-bit samples, mono, at 8 kHz (as a 32-bit float).
  private static var tracks: [UInt8] {
    let audio = element(0xB5, [0x45, 0xFA, 0, 0]) + element(0x9F, [1]) + element(0x6264, [16])
    return element(
      0x1654_AE6B,
      element(
        0xAE,
        element(0xD7, [1]) + element(0x73C5, [1]) + element(0x83, [2]) + element(0x86, Array("A_PCM/INT/LIT".utf8))
          + element(0xE1, audio)))
  }

  private static var cluster: [UInt8] {
    let samples = (0..<8000).flatMap { littleEndian(Int16($0 % 100 * 200)) }
    return element(0x1F43_B675, element(0xE7, [0]) + element(0xA3, [0x81, 0, 0, 0x80] + samples))
  }

  /// An element's identifier as in the file, then its size, in eight bytes if one isn't enough.
  private static func element(_ identifier: UInt32, _ content: [UInt8]) -> [UInt8] {
    let name = (0..<4).map { UInt8(truncatingIfNeeded: identifier >> (24 - 8 * $0)) }.drop { $0 == 0 }
    let count = UInt64(content.count)
    let size: [UInt8] =
      count < 127 ? [0x80 | UInt8(count)] : [0x01] + (1..<8).map { UInt8(truncatingIfNeeded: count >> (56 - 8 * $0)) }
    return Array(name) + size + content
  }
}
