// The two owners of what is unsafe in this module: a file mapped for reading, and a file being written.

import Glibc

/// A read-only mapping of a file of 8-byte words that others may be appending to.
///
/// Touching a mapped page beyond a file's end kills the process (SIGBUS), so nothing is read that the file's size,
/// asked after the last growth, does not cover. A file that is mapped must never be truncated.
@safe
final class MappedFile: @unchecked Sendable {
  // Sendable: all stored properties are constants, and the mapped bytes are only read.
  private let base: UnsafeRawPointer
  private let mappedBytes: Int
  private let descriptor: Int32
  private let path: String
  /// What the file's size was when it was mapped: reading up to here needs no further question.
  private let checkedBytes: Int

  /// Opens and maps a file.
  convenience init(path: String) throws(WaveformError) {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .io(operation: "open", path: path, errno: errno) }
    try self.init(owning: descriptor, path: path)
  }

  /// The same file mapped again, with everything that has been written since, and room to grow.
  func remapped() throws(WaveformError) -> MappedFile {
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard copy >= 0 else { throw .io(operation: "dup", path: path, errno: errno) }
    return try MappedFile(owning: copy, path: path)
  }

  private init(owning descriptor: Int32, path: String) throws(WaveformError) {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else {
      let code = errno
      close(descriptor)
      throw .io(operation: "stat", path: path, errno: code)
    }
    // A mapping may reach past the file's end; twice the size spares a growing file most of its remappings.
    let size = Int(status.st_size)
    let length = max(2 * size, 1 << 16)
    guard let address = unsafe mmap(nil, length, PROT_READ, MAP_SHARED, descriptor, 0), unsafe address != MAP_FAILED
    else {
      let code = errno
      close(descriptor)
      throw .io(operation: "mmap", path: path, errno: code)
    }
    unsafe base = UnsafeRawPointer(address)
    mappedBytes = length
    checkedBytes = size
    self.descriptor = descriptor
    self.path = path
  }

  deinit {
    unsafe munmap(UnsafeMutableRawPointer(mutating: base), mappedBytes)
    close(descriptor)
  }

  /// Whether `words` words can be read without mapping again.
  func reaches(_ words: Int64) -> Bool { words <= Int64(mappedBytes / 8) }

  /// Lends the first `words` words of the file, as they are on disk (little-endian).
  ///
  /// Throws `.truncatedPyramid` where the file, or the mapping, is shorter; `reaches` tells the mapping's part.
  func withWords<Result>(
    _ words: Int64, _ body: (Span<UInt64>) throws(WaveformError) -> Result
  ) throws(WaveformError) -> Result {
    guard reaches(words) else { throw .truncatedPyramid(size: Int64(checkedBytes), needed: words * 8) }
    if words * 8 > checkedBytes {
      var status = stat()
      guard unsafe fstat(descriptor, &status) == 0 else { throw .io(operation: "stat", path: path, errno: errno) }
      guard words * 8 <= status.st_size else {
        throw .truncatedPyramid(size: Int64(status.st_size), needed: words * 8)
      }
    }
    let pointer = unsafe base.assumingMemoryBound(to: UInt64.self)
    return try body(unsafe Span(_unsafeStart: pointer, count: Int(words)))
  }
}

/// A file that only this process writes, word by word, at positions of its choice.
struct WrittenFile: ~Copyable {
  private let descriptor: Int32
  private let path: String

  /// Makes a new file. One of that name is unlinked, never truncated: whoever has it mapped keeps it.
  init(creating path: String) throws(WaveformError) {
    self.init(owning: try Self.create(path), path: path)
  }

  private init(owning descriptor: Int32, path: String) {
    self.descriptor = descriptor
    self.path = path
  }

  private static func create(_ path: String) throws(WaveformError) -> Int32 {
    if unsafe unlink(path) != 0, errno != ENOENT { throw .io(operation: "unlink", path: path, errno: errno) }
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw .io(operation: "create", path: path, errno: errno) }
    return descriptor
  }

  deinit { close(descriptor) }

  /// Writes little-endian words at a position counted in words. Blocks; a full disk is `.io` with `ENOSPC`.
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

  /// Returns when everything written is on the disk.
  func synchronize() throws(WaveformError) {
    guard fsync(descriptor) == 0 else { throw .io(operation: "fsync", path: path, errno: errno) }
  }
}
