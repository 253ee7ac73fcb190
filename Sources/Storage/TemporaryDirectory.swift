import Glibc

/// A folder that appears whole or not at all: filled under a temporary name beside its own, then renamed. Removed, with all
/// that is in it, if it is not committed.
struct TemporaryDirectory: ~Copyable {
  /// Where it is filled.
  let path: String
  private let destination: String
  private var isCommitted = false

  /// Makes the folder that is to become `destination`, which must not exist or be an empty folder: throws `.io` with
  /// `EEXIST` where there is something already.
  init(for destination: String) throws(StorageError) {
    let name = try Self.freeName(destination)
    let temporary = name + ".partial-" + UUIDv7().text
    try FileSystem.makeFolders(temporary)
    (self.destination, path) = (name, temporary)
  }

  private static func freeName(_ path: String) throws(StorageError) -> String {
    var path = path
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    if FileSystem.identity(of: path) == nil { return path }
    if FileSystem.isFolder(path), try FileSystem.names(in: path).isEmpty { return path }
    throw .io(operation: "mkdir", path: path, errno: EEXIST)
  }

  /// Makes it durable under its own name.
  mutating func commit() throws(StorageError) {
    try FileSystem.syncFolder(path)
    try FileSystem.rename(path, to: destination)
    isCommitted = true
    try FileSystem.syncFolder(FileSystem.parent(of: destination))
  }

  deinit { if !isCommitted { try? FileSystem.remove(path) } }
}
