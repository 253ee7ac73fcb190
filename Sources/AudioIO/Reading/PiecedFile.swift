import CSndfile
import Glibc
import Terms

/// A piece of the virtual file that libsndfile reads.
enum FilePiece: Sendable, Equatable {
  case bytes([UInt8])
  /// Bytes of the real file.
  case range(Range<Int64>)

  var count: Int64 {
    switch self {
    case .bytes(let bytes): Int64(bytes.count)
    case .range(let range): range.upperBound - range.lowerBound
    }
  }
}

/// Pieces of a file and bytes from memory, concatenated for libsndfile to read as one file.
///
/// Decoders read a few hundred bytes at a time and query the position after each: 46,000 system calls for ten minutes
/// of MP3 and 25,000 for FLAC. Here they are 200 and 1,200.
@safe
final class PiecedFile {
  private let descriptor: Int32
  private let pieces: [FilePiece]
  /// Where each piece begins, followed by the total length.
  private let starts: [Int64]
  private var position: Int64 = 0
  /// The index of the piece that was read last.
  private var current = 0
  /// The bytes of the last read of the file, which begin at `aheadStart`.
  private var ahead: [UInt8] = []
  private var aheadStart: Int64 = 0
  /// Bytes per read: when continuing from the last read, and after a jump, which in a search is the first of many.
  private static let (aheadLength, firstLength) = (1 << 16, 1 << 13)

  init(path: String, pieces: [FilePiece]) throws(AudioIOError) {
    descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system(operation: "open", errno: errno) }
    self.pieces = pieces
    var starts: [Int64] = [0]
    for piece in pieces { starts.append(starts[starts.count - 1] + piece.count) }
    self.starts = starts
  }

  deinit { close(descriptor) }

  private var length: Int64 { starts[pieces.count] }

  private func read(_ target: UnsafeMutableRawBufferPointer) -> Int {
    var done = 0
    while done < target.count, position < length {
      findPiece()
      let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: target[done...])
      let got = unsafe read(pieces[current], from: position - starts[current], into: rest)
      guard got > 0 else { break }
      done += got
      position += Int64(got)
    }
    return done
  }

  /// Sets `current` to the piece that contains `position`.
  private func findPiece() {
    if position < starts[current] || position >= starts[current + 1] {
      var (low, high) = (0, pieces.count)
      while high - low > 1 {
        let middle = (low + high) / 2
        if starts[middle] <= position { low = middle } else { high = middle }
      }
      current = low
    }
  }

  private func read(_ piece: FilePiece, from start: Int64, into target: UnsafeMutableRawBufferPointer) -> Int {
    let count = Int(min(piece.count - start, Int64(target.count)))
    switch piece {
    case .bytes(let bytes):
      unsafe target.copyBytes(from: bytes[Int(start)..<Int(start) + count])
      return count
    case .range(let range):
      let wanted = unsafe UnsafeMutableRawBufferPointer(rebasing: target[..<count])
      return unsafe read(at: range.lowerBound + start, into: wanted)
    }
  }

  private func read(at offset: Int64, into target: UnsafeMutableRawBufferPointer) -> Int {
    if !isAhead(offset) {
      if target.count >= Self.aheadLength {
        return unsafe pread(descriptor, target.baseAddress, target.count, off_t(offset))
      }
      fill(from: offset)
    }
    guard isAhead(offset) else { return 0 }
    let first = Int(offset - aheadStart)
    let count = min(ahead.count - first, target.count)
    unsafe target.copyBytes(from: ahead[first..<first + count])
    return count
  }

  private func isAhead(_ offset: Int64) -> Bool {
    offset >= aheadStart && offset < aheadStart + Int64(ahead.count)
  }

  private func fill(from offset: Int64) {
    let goesOn = offset == aheadStart + Int64(ahead.count)
    let length = goesOn ? Self.aheadLength : Self.firstLength
    ahead = unsafe [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
      count = max(unsafe pread(descriptor, buffer.baseAddress, length, off_t(offset)), 0)
    }
    aheadStart = offset
  }

  private func seek(_ offset: Int64, from whence: Int32) -> Int64 {
    let base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? position : length
    let (sum, overflow) = base.addingReportingOverflow(offset)
    guard !overflow, sum >= 0 else { return -1 }
    position = sum
    return sum
  }

  /// Returns the callbacks through which libsndfile uses this file; pass `opaque` as user data.
  static func callbacks() -> SF_VIRTUAL_IO {
    unsafe SF_VIRTUAL_IO(
      get_filelen: { unsafe PiecedFile.of($0).length },
      seek: { offset, whence, file in unsafe PiecedFile.of(file).seek(offset, from: whence) },
      read: { bytes, count, file in
        sf_count_t(unsafe PiecedFile.of(file).read(UnsafeMutableRawBufferPointer(start: bytes, count: Int(count))))
      },
      write: { _, _, _ in 0 },
      tell: { unsafe PiecedFile.of($0).position })
  }

  /// A pointer that is valid as long as the object is kept alive.
  @unsafe
  var opaque: UnsafeMutableRawPointer { unsafe Unmanaged.passUnretained(self).toOpaque() }

  private static func of(_ opaque: UnsafeMutableRawPointer?) -> PiecedFile {
    guard let opaque = unsafe opaque else { preconditionFailure("libsndfile lost its file") }
    return unsafe Unmanaged<PiecedFile>.fromOpaque(opaque).takeUnretainedValue()
  }
}
