import Glibc
import Terms

/// The few path operations that the media store needs. Each one blocks.
package enum FileSystem {
  /// Creates a folder and its missing parents, accessible only to this user. New folders survive a power failure.
  package static func makeFolders(_ path: String) throws(StorageError) {
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
    // Otherwise everything synced inside it could be lost along with its name.
    if isNew { try syncFolder(parent.isEmpty ? "." : parent) }
  }

  /// Creates one folder. Returns false if it already exists.
  @discardableResult
  static func makeFolder(_ path: String) throws(StorageError) -> Bool {
    if unsafe mkdir(path, 0o700) == 0 { return true }
    let code = errno
    if code == EEXIST && isFolder(path) { return false }
    throw StorageError(errno: code, "mkdir", path)
  }

  /// Whether there is a folder at `path`.
  package static func isFolder(_ path: String) -> Bool {
    var info = stat()
    return unsafe stat(path, &info) == 0 && info.st_mode & S_IFMT == S_IFDIR
  }

  /// Throws if no files can be created in a folder.
  static func checkWritable(_ path: String) throws(StorageError) {
    guard unsafe access(path, W_OK | X_OK) == 0 else { throw StorageError(errno: errno, "access", path) }
  }

  /// Returns the length of a file in bytes.
  package static func length(of path: String) throws(StorageError) -> Int64 {
    var info = stat()
    guard unsafe stat(path, &info) == 0 else { throw StorageError(errno: errno, "stat", path) }
    return Int64(info.st_size)
  }

  /// Returns how many bytes a file takes up on the disk, not counting holes; 0 if it doesn't exist.
  static func allocatedBytes(of path: String) -> Int64 {
    var info = stat()
    return unsafe stat(path, &info) == 0 ? Int64(info.st_blocks) * 512 : 0
  }

  /// Renames a file or folder atomically.
  package static func rename(_ old: String, to new: String) throws(StorageError) {
    guard unsafe Glibc.rename(old, new) == 0 else { throw StorageError(errno: errno, "rename", old) }
    FileOperationLog.note(.rename(old, to: new))
  }

  /// Gives a file a second name on the same disk.
  package static func link(_ old: String, to new: String) throws(StorageError) {
    guard unsafe Glibc.link(old, new) == 0 else { throw StorageError(errno: errno, "link", new) }
    FileOperationLog.note(.link(old, to: new))
  }

  /// Makes the names in a folder durable: fsync of a file saves its contents, not its name.
  package static func syncFolder(_ path: String) throws(StorageError) {
    try FileDescriptor(path: path, flags: O_RDONLY | O_DIRECTORY).sync()
  }

  /// Returns the names in a folder, except "." and "..", in no particular order.
  package static func names(in path: String) throws(StorageError) -> [String] {
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

  /// Removes a file, or a folder with its contents. A missing file isn't an error. Symbolic links are removed, not
  /// followed.
  package static func remove(_ path: String) throws(StorageError) {
    if unsafe unlink(path) == 0 || errno == ENOENT { return }
    guard errno == EISDIR else { throw StorageError(errno: errno, "unlink", path) }
    do {
      for name in try names(in: path) { try remove(path + "/" + name) }
    } catch .io(_, _, ENOENT) {
      // Another process removes it, too.
    }
    guard unsafe rmdir(path) == 0 || errno == ENOENT else { throw StorageError(errno: errno, "rmdir", path) }
  }

  /// Removes one file. Returns false if it doesn't exist.
  static func removeFile(_ path: String) throws(StorageError) -> Bool {
    if unsafe unlink(path) == 0 { return true }
    guard errno == ENOENT || errno == ENOTDIR else { throw StorageError(errno: errno, "unlink", path) }
    return false
  }

  /// Replaces a file's content atomically, even across a power failure; the file is accessible only to this user. Only
  /// one caller at a time may use the temporary file, which is on the same disk; by default, `path` with ".new".
  package static func replace(
    _ path: String, with bytes: [UInt8], through temporary: String? = nil
  ) throws(StorageError) {
    let temporary = temporary ?? path + ".new"
    do {
      let file = try FileDescriptor(path: temporary, flags: O_WRONLY | O_CREAT | O_TRUNC)
      try file.write(bytes.span)
      try file.sync()
      try rename(temporary, to: path)
    } catch {
      _ = unsafe unlink(temporary)
      throw error
    }
  }

  /// Creates a file with `bytes`, accessible only to this user, unless there is one that has any. Of several processes
  /// that do this at once, on any machine, one does. Doesn't follow a link. When it returns, the bytes are on disk, no
  /// matter which process has written them, but maybe not the file's name.
  ///
  /// Never waits for another process, with two exceptions: an empty file, which a process may be about to fill, and
  /// disks without hard links. There, the first to lock the file writes it. Throws `.inUse` if another process has the
  /// lock for longer than `patience`.
  package static func createOnce(
    _ path: String, with bytes: [UInt8], patience: Duration = .seconds(2)
  ) throws(StorageError) {
    let temporary = "\(path).\(AttemptToken.newNonce())"
    defer { _ = unsafe unlink(temporary) }
    do {
      let file = try FileDescriptor(path: temporary, flags: O_WRONLY | O_CREAT | O_EXCL)
      try file.write(bytes.span)
      try file.sync()
    }
    // A link appears with all bytes, and only if nothing has the name.
    if (try? link(temporary, to: path)) == nil { try fillIfEmpty(path, with: bytes, patience) }
  }

  private static func fillIfEmpty(_ path: String, with bytes: [UInt8], _ patience: Duration) throws(StorageError) {
    let file = try FileDescriptor(path: path, flags: O_RDWR | O_CREAT | O_NOFOLLOW)
    var first = [0 as UInt8]
    let deadline = Clock.system.now + patience
    while try file.read(into: &first) == 0 {
      if try file.lock() {
        guard try file.read(into: &first) == 0 else { break }
        file.closeToOthers()
        try file.write(bytes.span)
        break
      }
      // Another process is writing it.
      guard Clock.system.now < deadline else { throw .inUse(path: path) }
      Clock.system.pause(0.01)
    }
    try file.sync()
  }

  /// Returns the content of a file. Throws `.io` with `EFBIG` if it is longer than `limit`. `flags` are those of open()
  /// beside O_RDONLY.
  package static func contents(of path: String, limit: Int64, flags: Int32 = 0) throws(StorageError) -> [UInt8] {
    let file = try FileDescriptor(path: path, flags: O_RDONLY | flags)
    var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 64 * 1024))
    while true {
      let count = try file.read(into: &buffer)
      guard count > 0 else { return bytes }
      bytes += buffer.prefix(count)
      guard bytes.count <= limit else { throw .io(operation: "read", path: path, errno: EFBIG) }
    }
  }

  /// Copies a file, or its first `count` bytes, to a new file, makes the copy durable, and returns its length and its
  /// SHA-256.
  @discardableResult
  static func copy(
    _ old: String, to new: String, bytes count: Int64 = .max
  ) throws(StorageError) -> (bytes: Int64, sha256: String) {
    // A pipe in its place would never be opened otherwise.
    let source = try FileDescriptor(path: old, flags: O_RDONLY | O_NONBLOCK)
    let copy = try FileDescriptor(path: new, flags: O_WRONLY | O_CREAT | O_EXCL)
    let copied = try copy.append(contentsOf: source, bytes: count)
    try copy.sync()
    return copied
  }

  /// Returns the folder that contains a file or folder.
  package static func parent(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// Returns the device and inode of the file at `path`, or nil if there is none.
  static func identity(of path: String) -> FileIdentity? {
    var info = stat()
    guard unsafe stat(path, &info) == 0 else { return nil }
    return FileIdentity(info)
  }

  /// Gives a folder the mode 0700 and a file 0600. Doesn't follow links. Returns false if the kernel refuses.
  @discardableResult
  static func makePrivate(_ path: String, unless isOthers: (String) -> Bool = { _ in false }) -> Bool {
    var info = stat()
    guard unsafe lstat(path, &info) == 0 else { return false }
    let mode: mode_t
    switch info.st_mode & S_IFMT {
    case S_IFDIR: mode = 0o700
    case S_IFREG: mode = 0o600
    default: return true
    }
    return unsafe info.st_mode & 0o7777 == mode || isOthers(path) || chmod(path, mode) == 0
  }

  /// Removes a folder if it is empty.
  static func removeIfEmpty(_ path: String) {
    unsafe rmdir(path)
  }

  /// Returns the number of bytes that an unprivileged process can still write to the disk of `path`.
  package static func freeBytes(at path: String) throws(StorageError) -> Int64 {
    var info = statvfs()
    guard unsafe statvfs(path, &info) == 0 else { throw StorageError(errno: errno, "statvfs", path) }
    let (bytes, overflow) = Int64(clamping: info.f_bavail).multipliedReportingOverflow(by: Int64(info.f_frsize))
    return overflow ? .max : bytes
  }
}

/// The identity of a file, independent of its name: its device and inode.
struct FileIdentity: Equatable {
  private let device: UInt64
  private let inode: UInt64

  init(_ info: stat) { (device, inode) = (UInt64(info.st_dev), UInt64(info.st_ino)) }
}
