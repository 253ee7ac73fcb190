import Dispatch
import Glibc
import Synchronization

/// A file with content that may be replaced while the service runs: of keys, or of secrets.
final class WatchedFile<Content: Sendable>: Sendable {
  /// What changes whenever a file is written or replaced.
  private struct Stamp: Equatable {
    var device, inode: UInt64
    var size, modified, changed: Int64

    /// nil if there is no file.
    init?(_ path: String) {
      var info = stat()
      guard unsafe stat(path, &info) == 0 else { return nil }
      (device, inode, size) = (UInt64(info.st_dev), UInt64(info.st_ino), Int64(info.st_size))
      modified = Int64(info.st_mtim.tv_sec) * 1_000_000_000 + Int64(info.st_mtim.tv_nsec)
      changed = Int64(info.st_ctim.tv_sec) * 1_000_000_000 + Int64(info.st_ctim.tv_nsec)
    }
  }

  /// The file's path.
  let path: String
  private let read: @Sendable (String) throws -> Content
  private let state: Mutex<(content: Content, stamp: Stamp?)>
  /// Only one caller at a time reads the file.
  private let queue = DispatchQueue(label: "watched file")

  /// Reads the file. Throws what `read` throws.
  init(path: String, _ read: @escaping @Sendable (String) throws -> Content) throws {
    (self.path, self.read) = (path, read)
    let stamp = Stamp(path)
    state = Mutex((try read(path), stamp))
  }

  /// What the file contained when it was last valid.
  var content: Content { state.withLock { $0.content } }

  /// Reads the file again if it has changed since it was last read. Returns whether it has; throws, and keeps the
  /// earlier content, if the new one isn't valid. Blocks, for microseconds if it hasn't changed.
  @discardableResult
  func reload() throws -> Bool {
    try queue.sync {
      // Before the content, so that a change in between is seen the next time.
      let stamp = Stamp(path)
      guard stamp != state.withLock({ $0.stamp }) else { return false }
      state.withLock { $0.stamp = stamp }
      let content = try read(path)
      state.withLock { $0.content = content }
      return true
    }
  }
}
