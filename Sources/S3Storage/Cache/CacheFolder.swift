// Objects on a local disk, in a folder of one process:
//
//   CACHE/lock                   held (flock) by the process
//   CACHE/objects/<id>.<name>    the bytes of recordings/<id>/<name>: a sparse file as long as the object
//   CACHE/indexes/<id>.<name>    which blocks of it are there; see BlockIndex
//   CACHE/incoming/              files that are about to become objects; emptied at startup

import Glibc
import Storage

/// The folder of a cache.
struct CacheFolder: Sendable {
  private let directory: String

  /// Creates the folder if it is missing.
  init(_ directory: String) throws(StorageError) {
    self.directory = directory
    for folder in ["objects", "indexes", "incoming"] { try FileSystem.makeFolders("\(directory)/\(folder)") }
  }

  /// The path of an object's file, whether or not it exists.
  func path(of key: ObjectKey) -> String { "\(directory)/objects/\(Self.name(of: key))" }

  /// The same of its index.
  func indexPath(of key: ObjectKey) -> String { "\(directory)/indexes/\(Self.name(of: key))" }

  /// Returns the path of a new file.
  func incomingPath() -> String { "\(directory)/incoming/\(AttemptToken.newNonce())" }

  private static func name(of key: ObjectKey) -> String { "\(key.recording).\(key.name)" }

  private static func key(of name: String) -> ObjectKey? {
    guard let id = RecordingID(String(name.prefix(36))), name.dropFirst(36).first == ".",
      MediaStore.isFileName(String(name.dropFirst(37)))
    else { return nil }
    return ObjectKey(id, String(name.dropFirst(37)))
  }

  /// Returns the objects that earlier processes left, with their size on the disk, least recently used first. Removes
  /// what is no object. Looks at each file, but reads none.
  func list() throws(StorageError) -> [(key: ObjectKey, cost: Int64)] {
    for name in try FileSystem.names(in: directory + "/incoming") {
      try FileSystem.remove("\(directory)/incoming/\(name)")
    }
    let objects = Set(try FileSystem.names(in: directory + "/objects"))
    let indexes = Set(try FileSystem.names(in: directory + "/indexes"))
    var found: [(key: ObjectKey, cost: Int64, used: Int64)] = []
    for name in objects.union(indexes) {
      var (object, index) = (stat(), stat())
      guard let key = Self.key(of: name), unsafe stat("\(directory)/objects/\(name)", &object) == 0,
        unsafe stat("\(directory)/indexes/\(name)", &index) == 0
      else {
        for folder in ["objects", "indexes"] { try FileSystem.remove("\(directory)/\(folder)/\(name)") }
        continue
      }
      let used = Int64(index.st_mtim.tv_sec) * 1_000_000_000 + Int64(index.st_mtim.tv_nsec)
      found.append((key, Int64(object.st_blocks + index.st_blocks) * 512, used))
    }
    return found.sorted { $0.used < $1.used }.map { ($0.key, $0.cost) }
  }
}
