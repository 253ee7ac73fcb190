// A piece of a program stream may begin anywhere, and its sound, a few frames per packet, looks like raw MPEG audio or
// AC-3 with gaps. So its packs are searched for before those formats.
//
//   pack header (ISO 13818-1 §2.5.3.3)      0x000001BA, 01, then 38 bits of time and 31 of rate with 7 marker bits,
//                                           5 reserved, 3: number of stuffing bytes that follow
//   the same of MPEG-1 (11172-1 §2.4.3.2)   0x000001BA, 0010, then 33 and 22 bits plus 6 marker bits of 1
//   then a system header (0xBB) or packets, each 0x000001, a larger byte, a 16-bit size

/// The position of the start of a program stream.
enum ProgramStream {
  private static let mark: [UInt8] = [0, 0, 1, 0xBA]
  /// Maximum number of bytes before the first pack.
  private static let searchLimit = 65_536

  /// Returns 0 if the file begins with a pack. Otherwise returns the position of the first packet that leads to the
  /// first pack in the first 64 KiB, or of that pack, if two more start codes follow where the sizes put them. Returns
  /// nil if there is none, or if the file is of another kind, even one that may contain a program stream.
  static func begin(_ start: FileStart) -> Int? {
    let bytes = start.bytes(at: 0, count: searchLimit + 16)
    if bytes.starts(with: mark) { return 0 }
    guard !FirstFrame.isOtherKind(Array(bytes.prefix(264))), bytes.count > mark.count else { return nil }
    var place = 0
    while place + mark.count <= bytes.count, place < searchLimit {
      // 0x01 is the mark's third byte. If it isn't here, the mark can't begin here or, unless this byte is 0, at the
      // next two.
      guard bytes[place + 2] <= 1 else {
        place += 3
        continue
      }
      if bytes[place..<place + 4].elementsEqual(mark), goesOn(start, from: place) {
        return (0..<place).first { leads(bytes, from: $0, to: place) } ?? place
      }
      place += 1
    }
    return nil
  }

  /// Whether consecutive packets lead from one position exactly to the other.
  private static func leads(_ bytes: [UInt8], from first: Int, to pack: Int) -> Bool {
    var place = first
    while place + 6 <= pack, bytes[place] == 0, bytes[place + 1] == 0, bytes[place + 2] == 1, bytes[place + 3] > 0xBA {
      place += 6 + (Int(bytes[place + 4]) << 8 | Int(bytes[place + 5]))
    }
    return place == pack
  }

  private static func goesOn(_ start: FileStart, from place: Int) -> Bool {
    guard let length = packLength(start.bytes(at: place, count: 14)) else { return false }
    let packet = start.bytes(at: place + length, count: 6)
    guard packet.count == 6, packet.starts(with: [0, 0, 1]), packet[3] > 0xBA else { return false }
    let end = place + length + 6 + (Int(packet[4]) << 8 | Int(packet[5]))
    let next = start.bytes(at: end, count: 4)
    // The file may also be cut at its end.
    return next.count < 4 || next.starts(with: [0, 0, 1]) && next[3] >= 0xB9
  }

  /// Returns the length of a pack header, or nil if it isn't one.
  private static func packLength(_ head: [UInt8]) -> Int? {
    guard head.count == 14 else { return nil }
    let isSecond =
      head[4] & 0xC4 == 0x44 && head[6] & 4 != 0 && head[8] & 4 != 0 && head[9] & 1 != 0 && head[12] & 3 == 3
    if isSecond { return 14 + Int(head[13] & 7) }
    let isFirst =
      head[4] & 0xF1 == 0x21 && head[6] & 1 != 0 && head[8] & 1 != 0 && head[9] & 0x80 != 0 && head[11] & 1 != 0
    return isFirst ? 12 : nil
  }
}
