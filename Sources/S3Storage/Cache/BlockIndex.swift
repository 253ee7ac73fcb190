// What a cached object is, and which of its blocks the cache has: a small file beside the sparse file with the bytes.
// All numbers are little-endian.
//
//     0   8   "SWBLOCK1"
//     8   8   the object's length in bytes
//    16  32   its SHA-256; zeros if it isn't known
//    48   1   the length of its entity tag in bytes, at most 127
//    49 127   the entity tag, padded with zeros
//   176  48   zeros
//   224  32   SHA-256 of the bytes 0 to 223
//   256  32   the seal: SHA-256 of the table, once all blocks together have been found to have the object's SHA-256
//   288 32n   the table: for each block of 64 KiB, the last maybe shorter, the SHA-256 of its bytes; zeros if the cache
//             doesn't have the block
//
// Nothing is synced. A block's bytes are written before its digest, but after a power failure either may be missing. So
// a process believes the table only as far as it has compared it with the bytes: a torn index or file loses blocks, and
// can't make wrong bytes look right.

import Glibc
import Storage
import Terms

/// The version of an object.
struct CachedVersion: Sendable, Equatable {
  let bytes: Int64
  /// Empty if it isn't known.
  let entityTag: String
  /// In hexadecimal digits, if it is known.
  let sha256: String?

  init(bytes: Int64, entityTag: String, sha256: String?) {
    self.bytes = bytes
    self.entityTag = entityTag.utf8.count <= 127 ? entityTag : ""
    self.sha256 = sha256
  }
}

extension CachedVersion {
  /// Length of a block in bytes.
  static let blockBytes = 64 << 10

  /// The number of blocks.
  var blockCount: Int {
    let (whole, rest) = bytes.quotientAndRemainder(dividingBy: Int64(Self.blockBytes))
    return Int(whole) + (rest > 0 ? 1 : 0)
  }

  /// Returns the bytes of blocks.
  func range(of blocks: Range<Int>) -> Range<Int64> {
    Int64(blocks.lowerBound) * Int64(Self.blockBytes)..<min(Int64(blocks.upperBound) * Int64(Self.blockBytes), bytes)
  }

  /// Returns the blocks that bytes are in. `range` isn't empty and within the object.
  func blocks(of range: Range<Int64>) -> Range<Int> {
    Int(range.lowerBound / Int64(Self.blockBytes))..<Int((range.upperBound - 1) / Int64(Self.blockBytes)) + 1
  }

  /// Returns the digests of the blocks in `bytes`, which begin with a block, as in the table.
  static func digests(of bytes: [UInt8]) -> [UInt8] {
    stride(from: 0, to: bytes.count, by: blockBytes).flatMap { start in
      SHA256.digest(of: bytes.span.extracting(start..<min(start + blockBytes, bytes.count)))
    }
  }
}

/// The index of one cached object, open.
struct BlockIndex: Sendable {
  static let digestBytes = 32
  private static let magic = Array("SWBLOCK1".utf8)
  private static let headBytes = 256
  private static let tableOffset: Int64 = 288

  let file: BlockFile
  let version: CachedVersion

  /// Returns the length of an object's index in bytes.
  static func length(for version: CachedVersion) -> Int64 { tableOffset + Int64(version.blockCount * digestBytes) }

  /// Creates an index without blocks, in place of one that may be there.
  init(creating path: String, _ version: CachedVersion) throws(StorageError) {
    file = try BlockFile(path: path, flags: O_RDWR | O_CREAT | O_TRUNC)
    self.version = version
    try file.resize(to: Self.length(for: version))
    try file.write(Self.head(of: version), at: 0)
  }

  /// Opens an index. Returns nil if there is none, or if it is damaged.
  init?(opening path: String) throws(StorageError) {
    do throws(StorageError) { file = try BlockFile(path: path, flags: O_RDWR) } catch {
      if case .io(_, _, ENOENT) = error { return nil }
      throw error
    }
    guard let version = Self.version(try file.read(Self.headBytes, at: 0)),
      try file.length() == Self.length(for: version)
    else { return nil }
    self.version = version
  }

  /// Returns the table of all blocks.
  func table() throws(StorageError) -> [UInt8] { try digests(of: 0..<version.blockCount) }

  /// Returns the part of the table about some blocks.
  func digests(of blocks: Range<Int>) throws(StorageError) -> [UInt8] {
    let bytes = try file.read(blocks.count * Self.digestBytes, at: Self.offset(of: blocks.lowerBound))
    // Cut off by something else than this program.
    return bytes + [UInt8](repeating: 0, count: blocks.count * Self.digestBytes - bytes.count)
  }

  /// Records digests of the blocks from `first` on.
  func write(_ digests: [UInt8], from first: Int) throws(StorageError) {
    try file.write(digests, at: Self.offset(of: first))
  }

  /// Records that all blocks together are the object.
  func seal() throws(StorageError) { try file.write(SHA256.digest(of: try table()), at: Int64(Self.headBytes)) }

  /// Whether all blocks together are the object, provided that each has its digest.
  func isSealed() throws(StorageError) -> Bool {
    try file.read(Self.digestBytes, at: Int64(Self.headBytes)) == SHA256.digest(of: try table())
  }

  /// Forgets all blocks.
  func clear() throws(StorageError) {
    try write([UInt8](repeating: 0, count: version.blockCount * Self.digestBytes), from: 0)
  }

  // MARK: The head

  private static func offset(of block: Int) -> Int64 { tableOffset + Int64(block * digestBytes) }

  private static func head(of version: CachedVersion) -> [UInt8] {
    let length = UInt64(version.bytes)
    var head = magic + (0..<8).map { UInt8(truncatingIfNeeded: length >> ($0 * 8)) }
    head += version.sha256.flatMap(Hexadecimal.bytes) ?? [UInt8](repeating: 0, count: digestBytes)
    let tag = Array(version.entityTag.utf8)
    head += [UInt8(tag.count)] + tag
    head += [UInt8](repeating: 0, count: 224 - head.count)
    return head + SHA256.digest(of: head)
  }

  private static func version(_ head: [UInt8]) -> CachedVersion? {
    guard head.count == headBytes, Array(head[..<8]) == magic,
      SHA256.digest(of: Array(head[..<224])) == Array(head[224...])
    else { return nil }
    let length = (0..<8).reduce(UInt64(0)) { $0 | UInt64(head[8 + $1]) << ($1 * 8) }
    let sha256 = Array(head[16..<48])
    guard length <= 1 << 50, head[48] <= 127 else { return nil }
    return CachedVersion(
      bytes: Int64(length), entityTag: String(decoding: head[49..<49 + Int(head[48])], as: UTF8.self),
      sha256: sha256.allSatisfy { $0 == 0 } ? nil : Hexadecimal.text(sha256))
  }
}
