// What an AMR file holds (RFC 4867 §5), which says nothing of its length:
//
//   mark     "#!AMR\n" or, of wideband, "#!AMR-WB\n"
//   frame    20 ms of sound: a byte whose bits 3 … 6 name its kind, then as many bytes as a frame of that kind has
//
// While nobody speaks, a telephone sends a description of the background now and then and otherwise frames without
// content. ffmpeg decodes neither, so their time has to be kept by whoever reads what it decodes.

/// How long an AMR file is.
struct AMRExtent: Equatable {
  /// Frames of 20 ms.
  private(set) var frames: Int64 = 0
  /// Those of them that stand for silence.
  private(set) var silentFrames: Int64 = 0
  /// Whether the last frame is not all there.
  private(set) var isCut = false

  /// How long a frame is, in seconds.
  static let frameSeconds = 0.02

  /// Bytes behind the first one, by kind; nil for those that such files don't have.
  private static let narrowband: [Int?] = [12, 13, 15, 17, 19, 20, 26, 31, 5, nil, nil, nil, nil, nil, nil, 0]
  private static let wideband: [Int?] = [17, 23, 32, 36, 40, 46, 50, 58, 60, 5, nil, nil, nil, nil, 0, 0]

  /// Of the file at `path`, up to `frameLimit` frames: a day and more of them. nil where it is none of these, or where
  /// frames of no known kind are in it.
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
        // Somebody has made it shorter since.
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
