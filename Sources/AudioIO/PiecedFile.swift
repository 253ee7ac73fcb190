import CSndfile
import Glibc

/// A stretch of what libsndfile is given in place of a file's own bytes.
enum FilePiece: Sendable, Equatable {
  case bytes([UInt8])
  /// Bytes of the file itself.
  case range(Range<Int64>)

  fileprivate var count: Int64 {
    switch self {
    case .bytes(let bytes): Int64(bytes.count)
    case .range(let range): range.upperBound - range.lowerBound
    }
  }
}

/// Pieces of a file and bytes of ours, one after the other, for libsndfile to read as one file.
@safe
final class PiecedFile {
  private let descriptor: Int32
  private let pieces: [FilePiece]
  /// Where each piece begins, and at last the length of all.
  private let starts: [Int64]
  private var position: Int64 = 0
  /// The piece that was read last.
  private var current = 0

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

  /// Makes `current` the piece that `position` is in.
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
      return unsafe pread(descriptor, target.baseAddress, count, off_t(range.lowerBound + start))
    }
  }

  private func seek(_ offset: Int64, from whence: Int32) -> Int64 {
    let base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? position : length
    let (sum, overflow) = base.addingReportingOverflow(offset)
    guard !overflow, sum >= 0 else { return -1 }
    position = sum
    return sum
  }

  /// libsndfile's way to a file that is not its own; the pointer it passes on is `opaque`.
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

  /// Valid as long as the object is kept alive.
  @unsafe
  var opaque: UnsafeMutableRawPointer { unsafe Unmanaged.passUnretained(self).toOpaque() }

  private static func of(_ opaque: UnsafeMutableRawPointer?) -> PiecedFile {
    guard let opaque = unsafe opaque else { preconditionFailure("libsndfile lost its file") }
    return unsafe Unmanaged<PiecedFile>.fromOpaque(opaque).takeUnretainedValue()
  }
}
