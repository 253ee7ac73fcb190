import Glibc

// How a folder appears whole or not at all:
//
//   there is none     filled as DESTINATION.partial-<uuid>, beside its own place, then renamed
//   an empty one      filled as DESTINATION/.partial-<uuid>, as it may be the root of a disk, which can't be renamed or
//                     replaced; then what is in there is moved up, the file that makes it whole last
//
// A process that fills one holds a lock (flock) on it. What a killed one has left is removed by the next for the same
// destination.

/// A folder that appears whole or not at all. Removed, with all that is in it, if it is not committed.
struct TemporaryDirectory: ~Copyable {
  /// Where it is filled.
  let path: String
  private let destination: String
  private let lastFile: String
  private let isInside: Bool
  private let hold: FileDescriptor
  private var isCommitted = false

  /// Makes the folder that is to become `destination`, which must not exist or be an empty folder: throws `.io` with
  /// `EEXIST` where there is something already. Without the file `lastFile` the folder is of no use to anyone.
  init(for destination: String, lastFile: String) throws(StorageError) {
    var destination = destination
    while destination.count > 1, destination.hasSuffix("/") { destination.removeLast() }
    let isInside = FileSystem.identity(of: destination) != nil
    let prefix = isInside ? destination + "/.partial-" : destination + ".partial-"
    try Self.removeLeftovers(prefix)
    if isInside { try Self.checkEmpty(destination) }
    let path = prefix + UUIDv7().text
    try FileSystem.makeFolders(path)
    let hold = try FileDescriptor(path: path, flags: O_RDONLY | O_DIRECTORY)
    _ = try? hold.lock()
    (self.path, self.destination, self.lastFile, self.isInside) = (path, destination, lastFile, isInside)
    self.hold = hold
  }

  /// A new file system has `lost+found` in it.
  private static func checkEmpty(_ path: String) throws(StorageError) {
    guard FileSystem.isFolder(path), try FileSystem.names(in: path).allSatisfy({ $0 == "lost+found" }) else {
      throw .io(operation: "mkdir", path: path, errno: EEXIST)
    }
  }

  /// Removes the folders of this form that no process holds.
  private static func removeLeftovers(_ prefix: String) throws(StorageError) {
    let parent = FileSystem.parent(of: prefix)
    let start = prefix.dropFirst(prefix.lastIndex(of: "/") == nil ? 0 : parent == "/" ? 1 : parent.count + 1)
    guard let names = try? FileSystem.names(in: parent) else { return }
    for name in names where name.hasPrefix(start) && UUIDv7(String(name.dropFirst(start.count))) != nil {
      let path = parent + "/" + name
      guard let left = try? FileDescriptor(path: path, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW),
        (try? left.lock()) == true
      else { continue }
      try FileSystem.remove(path)
    }
  }

  /// Makes it durable in its own place.
  mutating func commit() throws(StorageError) {
    try FileSystem.syncFolder(path)
    if isInside { try moveUp() } else { try FileSystem.rename(path, to: destination) }
    isCommitted = true
    try FileSystem.syncFolder(isInside ? destination : FileSystem.parent(of: destination))
  }

  private func moveUp() throws(StorageError) {
    var moved: [String] = []
    do {
      for name in try FileSystem.names(in: path) where name != lastFile {
        try FileSystem.rename(path + "/" + name, to: destination + "/" + name)
        moved.append(name)
      }
      try FileSystem.syncFolder(destination)
      if FileSystem.identity(of: path + "/" + lastFile) != nil {
        try FileSystem.rename(path + "/" + lastFile, to: destination + "/" + lastFile)
      }
      FileSystem.removeIfEmpty(path)
    } catch {
      for name in moved { try? FileSystem.remove(destination + "/" + name) }
      throw error
    }
  }

  deinit { if !isCommitted { try? FileSystem.remove(path) } }
}
