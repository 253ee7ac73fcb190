import CLinux
import Glibc
import Terms

/// A file that only this process writes, in words at arbitrary positions.
struct WrittenFile: ~Copyable {
  private let descriptor: Int32
  private let path: String

  /// Creates a new file, or takes an empty one, as a fenced worker does. Unlinks any other instead of truncating
  /// it, so that processes that have it open keep it.
  init(creating path: String) throws(WaveformError) {
    self.init(owning: try Self.create(path), path: path)
  }

  private init(owning descriptor: Int32, path: String) {
    (self.descriptor, self.path) = (descriptor, path)
  }

  private static func create(_ path: String) throws(WaveformError) -> Int32 {
    var status = stat()
    let isEmpty = unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_size == 0
    if !isEmpty, unsafe unlink(path) != 0, errno != ENOENT {
      throw .io(operation: "unlink", path: path, errno: errno)
    }
    let flags = isEmpty ? O_NOFOLLOW : O_CREAT | O_EXCL
    let descriptor = unsafe open(path, O_WRONLY | O_CLOEXEC | flags, 0o644)
    guard descriptor >= 0 else { throw .io(operation: "create", path: path, errno: errno) }
    return descriptor
  }

  deinit { close(descriptor) }

  /// Writes little-endian words at a position counted in words. Blocks. A full disk is `.io` with `ENOSPC`.
  func write(_ words: Span<UInt64>, at position: Int64) throws(WaveformError) {
    var done = 0
    let size = words.count * 8
    while done < size {
      let count = unsafe words.withUnsafeBytes { bytes in
        unsafe pwrite(descriptor, bytes.baseAddress?.advanced(by: done), size - done, off_t(position) * 8 + done)
      }
      if count > 0 {
        done += count
      } else if count == 0 || errno != EINTR {
        throw .io(operation: "write", path: path, errno: count == 0 ? ENOSPC : errno)
      }
    }
  }

  /// Starts to write to disk what the cache has of a range of bytes, so that `synchronize` has less to wait for.
  func startWriting(_ bytes: Range<Int64>) {
    _ = sync_file_range(descriptor, off_t(bytes.lowerBound), off_t(bytes.count), UInt32(SYNC_FILE_RANGE_WRITE))
  }

  /// Waits until everything written is on disk.
  func synchronize() throws(WaveformError) {
    guard fsync(descriptor) == 0 else { throw .io(operation: "fsync", path: path, errno: errno) }
  }
}
