import Glibc
import Storage

/// The digests of a file that becomes an object, all from reading it once.
struct FileDigests: Sendable {
  let bytes: Int64
  /// The SHA-256 of the whole, in hexadecimal digits.
  let sha256: String
  /// Those of the blocks of 64 KiB, as in the cache's index.
  private(set) var blocks: [UInt8] = []
  /// The parts of a multipart upload with theirs; empty if the file isn't larger than one part.
  private(set) var parts: [(range: Range<Int64>, sha256: String)] = []

  /// How much is read at once: blocks and parts begin with a piece.
  private static let pieceBytes: Int64 = 1 << 20

  /// Reads a file. `partBytes` is a number of MiB.
  init(of path: String, partBytes: Int64) throws(StorageError) {
    precondition(partBytes > 0 && partBytes % Self.pieceBytes == 0, "parts are made of pieces")
    let file = try BlockFile(path: path, flags: O_RDONLY | O_NOFOLLOW)
    let length = try file.length()
    // There are at most 10,000 parts.
    let partBytes = max(partBytes, (length / 9_999 / Self.pieceBytes + 1) * Self.pieceBytes)
    let isOnePart = length <= partBytes
    var whole = SHA256()
    var part = SHA256()
    var (offset, partStart) = (Int64(0), Int64(0))
    while offset < length {
      let piece = try file.read(Int(min(Self.pieceBytes, length - offset)), at: offset)
      guard !piece.isEmpty else { throw .io(operation: "pread", path: path, errno: EIO) }
      whole.update(piece.span)
      blocks += CachedVersion.digests(of: piece)
      offset += Int64(piece.count)
      guard !isOnePart else { continue }
      part.update(piece.span)
      if offset - partStart == partBytes || offset == length {
        parts.append((partStart..<offset, part.hexDigest()))
        part = SHA256()
        partStart = offset
      }
    }
    (bytes, sha256) = (length, whole.hexDigest())
  }
}
