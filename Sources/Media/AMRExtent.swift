// The contents of an AMR file (RFC 4867 §5), whose header doesn't give its length:
//
//   mark     "#!AMR\n" or, for wideband, "#!AMR-WB\n"
//   frame    20 ms of sound: a byte whose bits 3 … 6 give its type, then the fixed number of bytes of that type
//
// During silence, a phone occasionally sends a description of the background noise and otherwise frames without
// content. ffmpeg decodes neither, so a reader of its output must account for their time.

/// The length of an AMR file.
struct AMRExtent: Equatable {
  /// Number of frames of 20 ms.
  private(set) var frames: Int64 = 0
  /// Number of those frames that represent silence.
  private(set) var silentFrames: Int64 = 0
  /// Whether the last frame is incomplete.
  private(set) var isCut = false

  /// Duration of a frame, in seconds.
  static let frameSeconds = 0.02

  /// Bytes after the first one, by type; nil for types that such files don't contain.
  private static let narrowband: [Int?] = [12, 13, 15, 17, 19, 20, 26, 31, 5, nil, nil, nil, nil, nil, nil, 0]
  private static let wideband: [Int?] = [17, 23, 32, 36, 40, 46, 50, 58, 60, 5, nil, nil, nil, nil, 0, 0]

  /// Measures the file at `path`, up to `frameLimit` frames (more than a day). Fails if it isn't an AMR file or
  /// contains frames of an unknown type.
  init?(path: String, frameLimit: Int64 = 5_000_000) {
    guard let file = FileStart(path: path) else { return nil }
    let head = file.bytes(at: 0, count: 9)
    let isWideband = head.starts(with: "#!AMR-WB\n".utf8)
    guard isWideband || head.starts(with: "#!AMR\n".utf8) else { return nil }
    let sizes = isWideband ? Self.wideband : Self.narrowband
    var piece: [UInt8] = []
    let length = file.length
    var (pieceStart, offset) = (0, isWideband ? 9 : 6)
    while offset < length, frames < frameLimit {
      if offset - pieceStart >= piece.count {
        (piece, pieceStart) = (file.bytes(at: offset, count: 65_536), offset)
        // The file was truncated in the meantime.
        guard !piece.isEmpty else { break }
      }
      let kind = Int(piece[offset - pieceStart] >> 3 & 15)
      guard let size = sizes[kind] else { return nil }
      offset += 1 + size
      guard offset <= length else {
        isCut = true
        break
      }
      frames += 1
      if kind > (isWideband ? 8 : 7) { silentFrames += 1 }
    }
  }
}
