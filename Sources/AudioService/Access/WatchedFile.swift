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
  private struct State {
    var content: Content
    var stamp: Stamp?
    /// Why it couldn't be read the last time.
    var fault: KeyFileError?
  }
  private let state: Mutex<State>
  /// Only one caller at a time reads the file.
  private let queue = DispatchQueue(label: "watched file")

  /// Reads the file. Throws what `read` throws.
  init(path: String, _ read: @escaping @Sendable (String) throws -> Content) throws {
    (self.path, self.read) = (path, read)
    let stamp = Stamp(path)
    state = Mutex(State(content: try read(path), stamp: stamp))
  }

  /// What the file contained when it was last valid.
  var content: Content { state.withLock { $0.content } }

  /// Reads the file again if it has changed since it was last read. Returns whether it has; throws, and keeps the
  /// earlier content, if the new one isn't valid, or can't be read: then it is tried again the next time, and throws
  /// once for each reason. Blocks, for microseconds if it hasn't changed.
  @discardableResult
  func reload() throws -> Bool {
    try queue.sync {
      // Before the content, so that a change in between is seen the next time.
      let stamp = Stamp(path)
      guard stamp != state.withLock({ $0.stamp }) else { return false }
      do {
        let content = try read(path)
        state.withLock { $0 = State(content: content, stamp: stamp) }
        return true
      } catch let error as KeyFileError {
        let isKnown = state.withLock { state in
          defer { state.fault = error }
          if case .unreadable = error { return state.fault == error }
          state.stamp = stamp
          return false
        }
        if isKnown { return false }
        throw error
      }
    }
  }
}
