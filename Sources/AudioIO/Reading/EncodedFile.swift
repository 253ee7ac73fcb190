import CLinux
import CSndfile
import Glibc
import Terms

/// A file that an encoder writes to. It records the first system call that failed: libsndfile doesn't report failures
/// of what its encoders write while closing, and a full disk would leave a short file that looks complete.
@safe
final class EncodedFile {
  private let descriptor: Int32
  private(set) var failure: AudioIOError?
  /// The end of the furthest byte written.
  private(set) var size: Int64 = 0
  /// Everything before this is on its way to the disk.
  private var startedSize: Int64 = 0
  /// The pages of an Ogg file; nil for other files.
  var pages: OggPages?

  /// Creates the file at `path`, replacing any existing file.
  init(creating path: String) throws(AudioIOError) {
    descriptor = unsafe Glibc.open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw .system(operation: "open", errno: errno) }
  }

  /// Replaces the content of an open file, which stays open when this is gone.
  init(replacing file: Int32) throws(AudioIOError) {
    guard ftruncate(file, 0) == 0, lseek(file, 0, SEEK_SET) == 0 else {
      throw .system(operation: "truncate", errno: errno)
    }
    descriptor = dup(file)
    guard descriptor >= 0 else { throw .system(operation: "dup", errno: errno) }
  }

  deinit { close(descriptor) }

  /// Throws if anything couldn't be written.
  func check() throws(AudioIOError) {
    if let failure { throw failure }
  }

  /// Waits until everything is on disk.
  func synchronize() throws(AudioIOError) {
    try check()
    guard fsync(descriptor) == 0 else { throw .system(operation: "fsync", errno: errno) }
  }

  /// Appends numbers in their in-memory representation.
  func append(_ words: [Int64]) throws(AudioIOError) {
    _ = unsafe words.withUnsafeBytes { unsafe write($0) }
    try check()
  }

  /// Adds chunks to the end of a complete WAV or RF64 file. Throws `.writeFailed` if a WAV file would become too long.
  func addChunks(_ chunks: [UInt8]) throws(AudioIOError) {
    try check()
    let end = seek(to: 0, from: SEEK_END)
    let bytes = [UInt8](repeating: 0, count: Int(end % 2)) + chunks
    var mark: [UInt8] = [0, 0, 0, 0]
    guard unsafe pread(descriptor, &mark, 4, 0) == 4 else { throw .system(operation: "read", errno: errno) }
    let length = end + Int64(bytes.count) - 8
    let isLong = mark.elementsEqual("RF64".utf8)
    guard isLong || length <= 0xFFFF_FFFF else { throw .writeFailed(code: 0, reason: "wav files end at 4 GiB") }
    _ = unsafe bytes.withUnsafeBytes { unsafe write($0) }
    // RF64 says it in its chunk “ds64”.
    _ = seek(to: isLong ? 20 : 4, from: SEEK_SET)
    let field = (0..<(isLong ? 8 : 4)).map { UInt8(truncatingIfNeeded: length >> (8 * Int64($0))) }
    _ = unsafe field.withUnsafeBytes { unsafe write($0) }
    try check()
  }

  private func writePages(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard let whole = unsafe pages?.append(bytes) else { return unsafe write(bytes) }
    return unsafe whole.withUnsafeBytes { unsafe write($0) } == whole.count ? bytes.count : 0
  }

  private func write(_ bytes: UnsafeRawBufferPointer) -> Int {
    var done = 0
    while done < bytes.count {
      let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[done...])
      let count = unsafe Glibc.write(descriptor, rest.baseAddress, rest.count)
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else {
        failure = failure ?? .system(operation: "write", errno: errno)
        break
      }
      done += count
    }
    size = max(size, position)
    startWriting()
    return done
  }

  /// Starts to write to disk what the cache has, every 8 MB, so that `synchronize` has little to wait for.
  private func startWriting() {
    guard size - startedSize >= 8 << 20 else { return }
    _ = sync_file_range(descriptor, off_t(startedSize), off_t(size - startedSize), UInt32(SYNC_FILE_RANGE_WRITE))
    startedSize = size
  }

  private var position: Int64 { Int64(lseek(descriptor, 0, SEEK_CUR)) }

  private func read(_ bytes: UnsafeMutableRawBufferPointer) -> Int {
    unsafe max(Glibc.read(descriptor, bytes.baseAddress, bytes.count), 0)
  }

  private func seek(to offset: Int64, from whence: Int32) -> Int64 {
    let found = Int64(lseek(descriptor, off_t(offset), whence))
    if found < 0 { failure = failure ?? .system(operation: "seek", errno: errno) }
    return found
  }

  /// Returns the callbacks through which libsndfile uses this file; pass `opaque` as user data.
  static func callbacks() -> SF_VIRTUAL_IO {
    unsafe SF_VIRTUAL_IO(
      get_filelen: { unsafe EncodedFile.of($0).size },
      seek: { offset, whence, file in unsafe EncodedFile.of(file).seek(to: offset, from: whence) },
      read: { bytes, count, file in
        sf_count_t(unsafe EncodedFile.of(file).read(UnsafeMutableRawBufferPointer(start: bytes, count: Int(count))))
      },
      write: { bytes, count, file in
        sf_count_t(unsafe EncodedFile.of(file).writePages(UnsafeRawBufferPointer(start: bytes, count: Int(count))))
      },
      tell: { unsafe EncodedFile.of($0).position })
  }

  /// A pointer that is valid as long as the object is kept alive.
  @unsafe
  var opaque: UnsafeMutableRawPointer { unsafe Unmanaged.passUnretained(self).toOpaque() }

  private static func of(_ opaque: UnsafeMutableRawPointer?) -> EncodedFile {
    guard let opaque = unsafe opaque else { preconditionFailure("libsndfile lost its file") }
    return unsafe Unmanaged<EncodedFile>.fromOpaque(opaque).takeUnretainedValue()
  }
}
