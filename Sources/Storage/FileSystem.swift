import Glibc

/// The few calls on paths that the media store needs. Every one blocks.
enum FileSystem {
  /// Makes a folder and those above it that are missing, for this user alone. What was made survives a power cut.
  static func makeFolders(_ path: String) throws(StorageError) {
    let names = path.split(separator: "/", omittingEmptySubsequences: true).dropLast().joined(separator: "/")
    let parent = path.hasPrefix("/") ? "/" + names : names
    var isNew: Bool
    do {
      isNew = try makeFolder(path)
    } catch .io(_, _, ENOENT) {
      guard !names.isEmpty else { throw StorageError(errno: ENOENT, "mkdir", path) }
      try makeFolders(parent)
      isNew = try makeFolder(path)
    }
    // Without it all that is ever synced inside could go with its name.
    if isNew { try syncFolder(parent.isEmpty ? "." : parent) }
  }

  /// Makes one folder; false where it is there already.
  @discardableResult
  static func makeFolder(_ path: String) throws(StorageError) -> Bool {
    if unsafe mkdir(path, 0o700) == 0 { return true }
    let code = errno
    if code == EEXIST && isFolder(path) { return false }
    throw StorageError(errno: code, "mkdir", path)
  }

  static func isFolder(_ path: String) -> Bool {
    var info = stat()
    return unsafe stat(path, &info) == 0 && info.st_mode & S_IFMT == S_IFDIR
  }

  /// Throws where names can't be added to a folder.
  static func checkWritable(_ path: String) throws(StorageError) {
    guard unsafe access(path, W_OK | X_OK) == 0 else { throw StorageError(errno: errno, "access", path) }
  }

  /// In bytes.
  static func length(of path: String) throws(StorageError) -> Int64 {
    var info = stat()
    guard unsafe stat(path, &info) == 0 else { throw StorageError(errno: errno, "stat", path) }
    return Int64(info.st_size)
  }

  /// Gives a file or folder another name, in one step that other processes see whole or not at all.
  static func rename(_ old: String, to new: String) throws(StorageError) {
    guard unsafe Glibc.rename(old, new) == 0 else { throw StorageError(errno: errno, "rename", old) }
  }

  /// Gives a file a second name on the same disk.
  static func link(_ old: String, to new: String) throws(StorageError) {
    guard unsafe Glibc.link(old, new) == 0 else { throw StorageError(errno: errno, "link", new) }
  }

  /// Makes the names in a folder durable: fsync of a file keeps its bytes, not the name it is found by.
  static func syncFolder(_ path: String) throws(StorageError) {
    try FileDescriptor(path: path, flags: O_RDONLY | O_DIRECTORY).sync()
  }

  /// The names in a folder but "." and "..", in no order.
  static func names(in path: String) throws(StorageError) -> [String] {
    guard let stream = unsafe opendir(path) else { throw StorageError(errno: errno, "opendir", path) }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while let entry = unsafe readdir(stream) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
        unsafe String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names
  }

  /// Removes a file, or a folder with all that is in it; what is not there is no error. Links are removed, never
  /// followed.
  static func remove(_ path: String) throws(StorageError) {
    if unsafe unlink(path) == 0 || errno == ENOENT { return }
    guard errno == EISDIR else { throw StorageError(errno: errno, "unlink", path) }
    for name in try names(in: path) {
      try remove(path + "/" + name)
    }
    guard unsafe rmdir(path) == 0 || errno == ENOENT else { throw StorageError(errno: errno, "rmdir", path) }
  }

  /// Removes a folder that is empty, and leaves any other.
  static func removeIfEmpty(_ path: String) {
    unsafe rmdir(path)
  }

  /// What an unprivileged process can still write on the disk that `path` is on.
  static func freeBytes(at path: String) throws(StorageError) -> Int64 {
    var info = statvfs()
    guard unsafe statvfs(path, &info) == 0 else { throw StorageError(errno: errno, "statvfs", path) }
    let (bytes, overflow) = Int64(clamping: info.f_bavail).multipliedReportingOverflow(by: Int64(info.f_frsize))
    return overflow ? .max : bytes
  }
}
