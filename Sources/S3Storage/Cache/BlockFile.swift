import Glibc
import Storage

/// An open file that is read and written at any place, closed when its owner is destroyed. Every call blocks.
@safe final class BlockFile: Sendable {
  let path: String
  private let number: Int32

  /// Opens `path`. A new file is accessible only to this user, and children don't inherit the descriptor.
  init(path: String, flags: Int32) throws(StorageError) {
    self.path = path
    while true {
      let result = unsafe open(path, flags | O_CLOEXEC, 0o600)
      if result >= 0 {
        number = result
        return
      }
      if errno != EINTR { throw StorageError(errno: errno, "open", path) }
    }
  }

  deinit { close(number) }

  /// The file's number in its file system.
  func inode() throws(StorageError) -> ino_t {
    var info = stat()
    guard unsafe fstat(number, &info) == 0 else { throw StorageError(errno: errno, "fstat", path) }
    return info.st_ino
  }

  /// The length in bytes.
  func length() throws(StorageError) -> Int64 {
    var info = stat()
    guard unsafe fstat(number, &info) == 0 else { throw StorageError(errno: errno, "fstat", path) }
    return Int64(info.st_size)
  }

  /// Makes the file `bytes` long, with a hole where nothing was written.
  func resize(to bytes: Int64) throws(StorageError) {
    guard ftruncate(number, Int(bytes)) == 0 else { throw StorageError(errno: errno, "ftruncate", path) }
  }

  /// Returns `count` bytes from `offset` on; fewer if the file ends before.
  func read(_ count: Int, at offset: Int64) throws(StorageError) -> [UInt8] {
    var failure: StorageError?
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, done in
      while done < count {
        let rest = unsafe UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: buffer[done...]))
        let got = unsafe pread(number, rest.baseAddress, count - done, Int(offset) + done)
        if got == 0 { return }
        if got < 0, errno != EINTR {
          failure = StorageError(errno: errno, "pread", path)
          return
        }
        done += max(got, 0)
      }
    }
    if let failure { throw failure }
    return bytes
  }

  /// Writes all bytes at `offset`.
  func write(_ bytes: [UInt8], at offset: Int64) throws(StorageError) {
    var done = 0
    while done < bytes.count {
      let rest = bytes[done...]
      let count = unsafe rest.withUnsafeBytes { unsafe pwrite(number, $0.baseAddress, $0.count, Int(offset) + done) }
      if count < 0, errno != EINTR { throw StorageError(errno: errno, "pwrite", path) }
      done += max(count, 0)
    }
  }

  /// Takes the file's advisory lock until the file is closed. Returns false if another open file has it.
  func lock() -> Bool { flock(number, LOCK_EX | LOCK_NB) == 0 }
}
