import Glibc
import Storage

/// The digests of a file that becomes an object, from reading it once.
struct FileDigests: Sendable {
  let bytes: Int64
  /// The SHA-256 of the whole, in hexadecimal digits.
  let sha256: String
  /// Those of the blocks of 64 KiB, as in the cache's index.
  private(set) var blocks: [UInt8] = []

  /// How much is read at once: a number of blocks.
  private static let pieceBytes = 1 << 20

  /// Reads a file.
  init(of path: String) throws(StorageError) {
    let file = try BlockFile(path: path, flags: O_RDONLY | O_NOFOLLOW)
    bytes = try file.length()
    var whole = SHA256()
    var offset: Int64 = 0
    while offset < bytes {
      let piece = try file.read(Int(min(Int64(Self.pieceBytes), bytes - offset)), at: offset)
      guard !piece.isEmpty else { throw .io(operation: "pread", path: path, errno: EIO) }
      whole.update(piece.span)
      blocks += CachedVersion.digests(of: piece)
      offset += Int64(piece.count)
    }
    sha256 = whole.hexDigest()
  }
}
