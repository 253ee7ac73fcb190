import Foundation
import Randomness
import Terms
import Testing

@testable import Media

/// Phones put several frames of AMR into a packet, of which ffmpeg decodes only the first.
final class PackedAMRTests {
  private let path = NSTemporaryDirectory() + "stillwave-amr-\(UUID().uuidString)"

  deinit { try? FileManager.default.removeItem(atPath: path) }

  private func big(_ value: UInt64, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (count - 1 - $0))) }
  }

  private func box(_ type: String, _ content: [UInt8]...) -> [UInt8] {
    let all = content.flatMap(\.self)
    return big(UInt64(8 + all.count), 4) + Array(type.utf8) + all
  }

  private func numbers(_ values: UInt64...) -> [UInt8] { values.flatMap { big($0, 4) } }

  /// Returns a 3GP file of packets with five frames each, 13 bytes long.
  private func film(packets: UInt64) -> [UInt8] {
    var random = TestRandom(for: 5)
    let frame = { [0x04] + (0..<12).map { _ in UInt8(truncatingIfNeeded: random.next()) } as [UInt8] }
    let sound = (0..<5 * packets).flatMap { _ in frame() }
    let ftyp = box("ftyp", Array("3gp4".utf8), numbers(0), Array("3gp4".utf8))
    let length = 800 * packets
    let zeros = [UInt8](repeating: 0, count: 60)
    let entry = box(
      "samr", [UInt8](zeros[..<6]) + [0, 1] + zeros[..<8] + [0, 1, 0, 16, 0, 0, 0, 0] + big(8000, 2) + [0, 0],
      box("damr", Array("swed".utf8) + [0, 0, 1, 0, 5]))
    let table = box(
      "stbl", box("stsd", numbers(0, 1), entry), box("stts", numbers(0, 1, packets, 800)),
      box("stsc", numbers(0, 1, 1, packets, 1)), box("stsz", numbers(0, 65, packets)),
      box("stco", numbers(0, 1, UInt64(ftyp.count + 8))))
    let reference = box("dinf", box("dref", numbers(0, 1), box("url ", numbers(1))))
    let media = box(
      "mdia", box("mdhd", numbers(0, 0, 0, 8000, length, 0x55C4_0000)),
      box("hdlr", numbers(0, 0) + Array("soun".utf8) + zeros[..<13]),
      box("minf", box("smhd", numbers(0, 0)), reference, table))
    let track = box("trak", box("tkhd", numbers(1, 0, 0, 1, 0, length), zeros), media)
    let header = box("mvhd", numbers(0, 0, 0, 8000, length, 0x10000) + zeros, numbers(0, 0, 0, 0, 2))
    return ftyp + box("mdat", sound) + box("moov", header, track)
  }

  @Test("all frames of a packet are decoded", arguments: [1, 50] as [UInt64])
  func packed(packets: UInt64) throws {
    try Data(film(packets: packets)).write(to: URL(filePath: path))
    let ffmpeg = try #require(FFmpeg())
    let facts = try MediaProbe(path: path, demuxer: .mov, with: ffmpeg, in: .none).facts()
    #expect(facts.packedStart == 0 && facts.promisedFrames == Int64(800 * packets))
    let decoding = try MediaDecoding(path: path, facts: facts, with: ffmpeg, in: .none)
    var sound: [Float] = []
    while decoding.read({ samples in for index in samples.indices { sound.append(samples[index]) } }) > 0 {}
    try decoding.finish()
    #expect(sound.count == Int(800 * packets))
    let silent = stride(from: 160, to: sound.count, by: 160).filter { start in
      sound[start..<start + 160].allSatisfy { $0 == 0 }
    }
    #expect(silent.isEmpty)
  }
}
