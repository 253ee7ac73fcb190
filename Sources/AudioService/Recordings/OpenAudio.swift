import HTTP
import Storage

/// Recordings' files that were just read, open and as responses: a player asks for one small range after the other, and
/// opening the file costs more than sending it.
///
/// An entry is current while the recording's row hasn't changed, so a deleted recording's file, or another tenant's, is
/// never found. A file that was removed, or whose length has changed, isn't sent, although it is open: it is opened
/// again, which reports the fault. Only for files in a folder of this machine: a cache removes those of a
/// bucket to have room, and looking at a file on another machine may wait.
final class OpenAudio: Sendable {
  /// A file as `…/audio` sends it, or `…/video`.
  struct Key: TenantKey {
    let recording: RecordingID
    let tenant: Tenant
    let isVideo: Bool
  }

  private struct Entry {
    let file: FileContent
    let whole: Representation
  }

  private let cache: Cache<Key, UInt64, Entry>

  /// `limit` is the maximum number of open files. `version` returns the version of a recording's row.
  init(limit: Int = 128, version: @escaping @Sendable (RecordingID) -> UInt64) {
    cache = Cache(limit: limit) { version($0.recording) }
  }

  /// The whole file; nil if it isn't open or isn't as it was. Costs a system call.
  subscript(key: Key) -> Representation? {
    guard let entry = cache[key] else { return nil }
    guard entry.file.isUnchanged else {
      cache.remove(key)
      return nil
    }
    return entry.whole
  }

  /// Returns the version of a file. Call it before reading the recording's row.
  func version(_ key: Key) -> UInt64 { cache.version(key) }

  /// Keeps a whole file open, which `whole` sends.
  func keep(_ file: FileContent, _ whole: Representation, for key: Key, version: UInt64) {
    cache.keep(Entry(file: file, whole: whole), for: key, version: version)
  }

  /// Closes the files of recordings that have changed or are gone.
  func removeOutdated() { cache.removeOutdated() }
}
