import Terms

// Where a file made of chunks should end, according to their sizes.
//
//   AVI, WAV   "RIFF" and a size of 32 bits, little-endian, of everything that follows; ODML files have several
//   CAF        8 bytes, then chunks: type of four letters, size of 64 bits, big-endian; −1: up to the end
//   FLV        header of 9 bytes and 4 of zeros, then tags: type, size of 24 bits, big-endian, 7 bytes of other things,
//              content, and 4 bytes that repeat the tag's length
//   VOC        blocks from the 16-bit offset at 20 on: type, size of 24 bits, little-endian; type 0 ends the file
//   WavPack    blocks: "wvpk", size of 32 bits, little-endian, of the rest
//   TS         packets of one size
//   PS         start codes, 0x000001 and a byte: 0xBA a pack header of 12 bytes, or 14 and as many more as its last
//              three bits say; 0xB9 the end; else a packet with its size, 16 bits
//   DSF        64-bit size of the file at 12, little-endian
//   DTS        frames, whose size less one is 14 bits from bit 46 on, for 16-bit big-endian words

/// Whether a file is complete, according to the sizes of its top-level chunks.
enum ChunkExtent: Equatable {
  case whole
  /// The file ends within a chunk.
  case cut
  /// Other data follows the chunks, or there are too many to check.
  case unknown

  /// Enough for hours of packets; takes about a second.
  private static let chunkLimit = 1 << 20

  /// Checks the file at `path`; `.unknown` for other formats. Needs one read of a few bytes per chunk.
  init(path: String, _ demuxer: Demuxer) {
    guard let file = FileStart(path: path) else {
      self = .unknown
      return
    }
    self =
      switch demuxer {
      case .avi, .wav:
        Self.walk(file, from: 0) { head in
          guard head.starts(with: "RIFF".utf8) else { return nil }
          let size = Self.little(head[4..<8])
          // Recorders that were interrupted leave one of these sizes.
          return size == 0 || size >= 0xFFFF_FF00 ? .toTheEnd : .bytes(8 + size + size % 2)
        }
      case .caf:
        Self.walk(file, from: 8) { head in
          let size = head[4..<12].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
          return size == .max ? .toTheEnd : size < 1 << 62 ? .bytes(12 + Int(size)) : nil
        }
      case .flv:
        Self.walk(file, from: 13) { head in
          guard [8, 9, 18].contains(head[0] & 0x1F) else { return .broken }
          return .bytes(15 + (Int(head[1]) << 16 | Int(head[2]) << 8 | Int(head[3])))
        }
      case .voc:
        Self.walk(file, from: Self.little(file.bytes(at: 20, count: 2)[...])) { head in
          head[0] == 0 ? .toTheEnd : head[0] < 16 ? .bytes(4 + Self.little(head[1..<4])) : nil
        }
      case .wv:
        Self.walk(file, from: file.tagsLength) { head in
          head.starts(with: "wvpk".utf8) ? .bytes(8 + Self.little(head[4..<8])) : nil
        }
      case .mpeg:
        Self.walk(file, from: ProgramStream.begin(file) ?? 0) { head in
          guard head.starts(with: [0, 0, 1]) else { return .broken }
          switch head[3] {
          case 0xBA: return .bytes(head[4] >> 6 == 1 ? 14 + Int(head[13] & 7) : 12)
          case 0xB9: return .toTheEnd
          default: return .bytes(6 + (Int(head[4]) << 8 | Int(head[5])))
          }
        }
      case .dts:
        Self.walk(file, from: file.tagsLength) { head in
          guard head.starts(with: [0x7F, 0xFE, 0x80, 0x01]) else { return head.allSatisfy { $0 == 0 } ? .broken : nil }
          return .bytes(1 + (Int(head[5] & 3) << 12 | Int(head[6]) << 4 | Int(head[7]) >> 4))
        }
      case .dsf: Self.little(file.bytes(at: 12, count: 8)[...]) > file.length ? .cut : .whole
      case .mpegts: Demuxer.endsWithinPacket(file).map { $0 ? .cut : .whole } ?? .unknown
      default: .unknown
      }
  }

  private enum Step {
    case bytes(Int), toTheEnd
    /// There is no chunk although only chunks may occur here.
    case broken
  }

  /// `step` derives the length of a chunk from its first sixteen bytes, or returns nil if no chunk begins there.
  private static func walk(_ file: FileStart, from first: Int, _ step: ([UInt8]) -> Step?) -> ChunkExtent {
    let length = file.length
    var offset = first
    for _ in 0..<chunkLimit {
      guard offset < length else { return offset == length ? .whole : .cut }
      var head = file.bytes(at: offset, count: 16)
      let isWhole = head.count == 16
      head += [UInt8](repeating: 0, count: 16 - head.count)
      switch step(head) {
      case .toTheEnd: return .whole
      case .broken: return .cut
      case .bytes(let count): offset += count
      case nil: return offset == first || isWhole ? .unknown : .whole
      }
    }
    return .unknown
  }

  private static func little(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reversed().reduce(0) { $0 << 8 | Int($1) } }
}
