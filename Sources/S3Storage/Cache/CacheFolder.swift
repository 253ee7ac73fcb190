// Objects on a local disk, in a folder of one process:
//
//   CACHE/lock                       held (flock) by the process
//   CACHE/objects/<id>.<name>        the bytes of recordings/<id>/<name>
//   CACHE/objects/part.<id>.<name>   the same until this process has found all of them there: a sparse file as long as
//                                    the object
//   CACHE/indexes/<id>.<name>        which blocks of it are there; see BlockIndex
//   CACHE/incoming/                  files that are about to become objects; emptied at startup
//
// Workers, libsndfile and ffmpeg open an object by its path, some of them more than once. So only a whole object gets
// that, by a rename, and its file never changes: whatever happens to the cache, they find this object or nothing, and
// no hole that reads as silence.

import Glibc
import Storage

/// The folder of a cache.
struct CacheFolder: Sendable {
  private let directory: String

  /// Creates the folder if it is missing.
  init(_ directory: String) throws(StorageError) {
    self.directory = directory
    try make()
  }

  /// Creates those of the cache's folders that are missing. Returns whether the objects' was.
  @discardableResult
  func make() throws(StorageError) -> Bool {
    let lacksObjects = !FileSystem.isFolder(directory + "/objects")
    for folder in ["objects", "indexes", "incoming"] { try FileSystem.makeFolders("\(directory)/\(folder)") }
    return lacksObjects
  }

  /// Throws if no file can be written.
  func check() throws(StorageError) {
    let path = incomingPath()
    defer { try? FileSystem.remove(path) }
    try BlockFile(path: path, flags: O_WRONLY | O_CREAT | O_EXCL).write([UInt8](repeating: 0, count: 4096), at: 0)
  }

  /// The path of an object's file, whether or not it exists. Only whole objects have one.
  func path(of key: ObjectKey) -> String { "\(directory)/objects/\(Self.name(of: key))" }

  /// The path of the same file until all of the object is there.
  func partPath(of key: ObjectKey) -> String { "\(directory)/objects/\(Self.partPrefix)\(Self.name(of: key))" }

  /// Returns the path of the file with an object or a part of it; nil if there is no such file.
  func file(of key: ObjectKey) -> String? { [partPath(of: key), path(of: key)].first(where: has) }

  /// Whether a file exists. If the disk can't tell, it counts as existing.
  func has(_ path: String) -> Bool {
    var status = stat()
    return unsafe stat(path, &status) == 0 || errno != ENOENT && errno != ENOTDIR
  }

  /// The path of its index.
  func indexPath(of key: ObjectKey) -> String { "\(directory)/indexes/\(Self.name(of: key))" }

  /// Returns the path of a new file. Creates its folder if it is missing.
  func incomingPath() -> String {
    let folder = directory + "/incoming"
    if !FileSystem.isFolder(folder) { try? FileSystem.makeFolders(folder) }
    return "\(folder)/\(AttemptToken.newNonce())"
  }

  private static let partPrefix = "part."

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
    let prefix = Self.partPrefix
    let parts = Set(objects.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) })
    var found: [(key: ObjectKey, cost: Int64, used: Int64)] = []
    for name in objects.union(indexes).union(parts) where !name.hasPrefix(prefix) {
      let (whole, part) = ("\(directory)/objects/\(name)", "\(directory)/objects/\(prefix)\(name)")
      let indexPath = "\(directory)/indexes/\(name)"
      // The index is the part's, which was begun after the other file had been given up.
      if parts.contains(name) { try FileSystem.remove(whole) }
      var (object, index) = (stat(), stat())
      guard let key = Self.key(of: name), unsafe stat(parts.contains(name) ? part : whole, &object) == 0,
        unsafe stat(indexPath, &index) == 0
      else {
        for path in [whole, part, indexPath] { try FileSystem.remove(path) }
        continue
      }
      let used = Int64(index.st_mtim.tv_sec) * 1_000_000_000 + Int64(index.st_mtim.tv_nsec)
      found.append((key, Int64(object.st_blocks + index.st_blocks) * 512, used))
    }
    return found.sorted { $0.used < $1.used }.map { ($0.key, $0.cost) }
  }
}
