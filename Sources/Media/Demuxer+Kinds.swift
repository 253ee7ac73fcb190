import Terms

// Formats that are recognized by more than a mark at their beginning, or by one of several marks.
//
//   mpegts     188-byte packets that begin with 0x47 (ISO 13818-1 §2.4.3.2), each preceded by a 4-byte timestamp on
//              Blu-ray, or followed by 16 bytes of error correction; a recorded broadcast may begin inside one
//   mpeg       a pack's start code, 0x000001BA (ISO 13818-1 §2.5.3.3); a cut piece may begin anywhere, see
//              `ProgramStream`
//   avi, wav   "RIFF"; a WAV file only if libsndfile doesn't support its codec
//   flv        "FLV" and version 1
//   caf        "caff"; its description (type "desc") names the codec: libsndfile reads PCM, and ALAC if its flags give
//              the depth
//   wv, tta, ape, mpc, mpc8   "wvpk", "TTA1", "MAC ", "MP+" with version 7, "MPCK"; also after an ID3 tag
//   dts        a sync word in 16- or 14-bit words of either byte order (ETSI TS 102 114 §5.3)
//   voc        "Creative Voice File" and 0x1A
//   dsf        "DSD " and the chunk's 64-bit size, 28

extension Demuxer {
  /// Returns the format indicated by the very first bytes.
  static func byMark(_ head: [UInt8]) -> Demuxer? {
    if head.starts(with: [0, 0, 1, 0xBA]) { return .mpeg }
    if head.starts(with: Array("FLV".utf8) + [1]) { return .flv }
    if head.starts(with: Array("DSD ".utf8) + [28, 0, 0, 0, 0, 0, 0, 0]) { return .dsf }
    if head.starts(with: Array("Creative Voice File".utf8) + [0x1A]) { return .voc }
    return nil
  }

  /// Returns the format indicated by the first bytes, or by those after an ID3 tag.
  static func byTaggedMark(_ head: [UInt8]) -> Demuxer? {
    let marks: [(String, Demuxer)] = [("wvpk", .wv), ("TTA1", .tta), ("MAC ", .ape), ("MPCK", .mpc8)]
    if let found = marks.first(where: { head.starts(with: $0.0.utf8) })?.1 { return found }
    if head.starts(with: "MP+".utf8), head.count > 3, head[3] & 0x0F == 7 { return .mpc }
    let syncs: [[UInt8]] = [
      [0x7F, 0xFE, 0x80, 0x01], [0xFE, 0x7F, 0x01, 0x80], [0x1F, 0xFF, 0xE8, 0x00, 0x07], [0xFF, 0x1F, 0x00, 0xE8],
    ]
    return syncs.contains { head.starts(with: $0) } ? .dts : nil
  }

  /// Returns the format of a RIFF or CAF file that libsndfile can't read.
  static func byCodec(_ start: FileStart, _ head: [UInt8]) -> Demuxer? {
    if head.starts(with: "RIFF".utf8), head.dropFirst(8).starts(with: "AVI ".utf8) { return .avi }
    if head.starts(with: "RIFF".utf8), head.dropFirst(8).starts(with: "WAVE".utf8) {
      return waveTag(start).map { foreignWaveTags.contains($0) } == true ? .wav : nil
    }
    guard head.starts(with: "caff".utf8), head.count >= 44, head[8...].starts(with: "desc".utf8) else { return nil }
    let codec = String(decoding: head[28..<32], as: UTF8.self)
    if codec == "alac" { return (1...4).contains(head[35]) && head[32...34].allSatisfy { $0 == 0 } ? nil : .caf }
    return ["lpcm", "ulaw", "alaw"].contains(codec) ? nil : .caf
  }

  /// The codes of G.726 (twice), AAC, DTS, and AC-3 in Microsoft's list of formats.
  private static let foreignWaveTags: Set<UInt16> = [0x0045, 0x0064, 0x00FF, 0x2000, 0x2001]

  /// Returns the codec of a WAV file. Limits the search, because a hostile file may contain thousands of chunks.
  private static func waveTag(_ start: FileStart) -> UInt16? {
    var offset = 12
    for _ in 0..<64 {
      let chunk = start.bytes(at: offset, count: 10)
      guard chunk.count == 10 else { return nil }
      if chunk.starts(with: "fmt ".utf8) { return UInt16(chunk[8]) | UInt16(chunk[9]) << 8 }
      let size = chunk[4..<8].reversed().reduce(0) { $0 << 8 | Int($1) }
      offset += 8 + size + size % 2
    }
    return nil
  }

  /// Whether the file is a sequence of transport stream packets, possibly beginning inside the first.
  static func isTransportStream(_ start: FileStart) -> Bool { firstPacket(start) != nil }

  /// Whether a transport stream's last packet is missing or incomplete; nil if this isn't a transport stream.
  static func endsWithinPacket(_ start: FileStart) -> Bool? {
    guard let first = firstPacket(start) else { return nil }
    let length = start.length
    guard (length - first.offset + first.lead) % first.length == 0 else { return true }
    return start.bytes(at: length - first.length + first.lead, count: 1) != [0x47]
  }

  /// Returns the offset of the first packet's 0x47, the distance between packets, and the bytes that precede each.
  private static func firstPacket(_ start: FileStart) -> (offset: Int, length: Int, lead: Int)? {
    let bytes = start.bytes(at: 0, count: 6 * 204)
    // A text could have a G wherever a packet would begin.
    guard bytes.contains(where: { $0 < 9 || $0 > 0x7E }) else { return nil }
    for length in [188, 192, 204] {
      for first in 0..<min(length, bytes.count) where bytes[first] == 0x47 {
        let places = stride(from: first, to: bytes.count - 3, by: length)
        // Require five packets, or all packets of a short file.
        guard Array(places).count >= 5 || start.length <= bytes.count && Array(places).count >= 2 else { continue }
        // No packet may be marked as corrupt or use the reserved type.
        if places.allSatisfy({ bytes[$0] == 0x47 && bytes[$0 + 1] & 0x80 == 0 && bytes[$0 + 3] & 0x30 != 0 }) {
          return (first, length, length == 192 ? 4 : 0)
        }
      }
    }
    return nil
  }
}
