import Glibc

// How a folder is created atomically:
//
//   none exists       filled as DESTINATION.partial-<uuid> in the same parent, then renamed
//   an empty one      filled as DESTINATION/.partial-<uuid>, because it may be the root of a disk, which can't be
//                     replaced; then its contents are moved up, with the file that completes it last
//
// A process that fills one holds a lock (flock) on it. What a killed process left is removed by the next one with the
// same destination.

/// A folder that is created atomically. It is removed with its contents unless it is committed.
struct TemporaryDirectory: ~Copyable {
  /// The folder to fill.
  let path: String
  private let destination: String
  private let lastFile: String
  private let isInside: Bool
  private let hold: FileDescriptor
  private var isCommitted = false

  /// Creates the folder that will become `destination`, which must not exist or must be empty; otherwise throws `.io`
  /// with `EEXIST`. `lastFile`: the file without which the folder is considered incomplete.
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

  /// Throws unless the folder is empty or contains only `lost+found`, as a new file system does.
  private static func checkEmpty(_ path: String) throws(StorageError) {
    guard FileSystem.isFolder(path), try FileSystem.names(in: path).allSatisfy({ $0 == "lost+found" }) else {
      throw .io(operation: "mkdir", path: path, errno: EEXIST)
    }
  }

  /// Removes folders with this prefix that no process holds.
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

  /// Moves the folder to its destination and makes it durable.
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
