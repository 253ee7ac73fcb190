import AudioService
import FoundationEssentials
import Glibc
import Storage
import Terms

/// Changes a file of keys as a whole: under a lock, and through another file and a rename, so that a service that reads
/// it meanwhile sees either the old or the new one.
enum KeyFileEditor {
  /// Reads the keys. Exits with a message if the file isn't valid.
  static func read(_ path: String) throws -> KeyFile {
    do throws(KeyFileError) { return try KeyFile(path: path) } catch { throw KeysFailure("\(path): \(error)") }
  }

  /// Changes the lines of a file. Exits with a message, and changes nothing, if the file isn't valid before or after.
  static func edit(_ path: String, creating: Bool = false, _ change: (inout [[UInt8]]) throws -> Void) throws {
    umask(0o077)
    // A link stays one.
    let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    let lock = try lock(path + ".lock")
    defer { close(lock) }
    var bytes: [UInt8] = []
    if unsafe access(path, F_OK) == 0 || !creating { bytes = try contents(path) }
    var lines = bytes.split(separator: 0x0A).map { Array($0) }
    try change(&lines)
    let changed = Array(lines.map { $0 + [0x0A] }.joined())
    do throws(KeyFileError) { _ = try KeyFile(parsing: changed) } catch { throw KeysFailure("\(path): \(error)") }
    try replace(path, with: changed)
  }

  /// Returns a key and the index of its line. Exits with a message if there is none.
  static func key(_ id: String, in lines: [[UInt8]]) throws -> (index: Int, key: Key) {
    for (index, line) in lines.enumerated() {
      if let key = (try? KeyFile(parsing: line))?.keys.first, key.id == id { return (index, key) }
    }
    throw KeysFailure("there is no key “\(id)”")
  }

  private static func contents(_ path: String) throws -> [UInt8] {
    _ = try read(path)
    do throws(KeyFileError) { return try KeyFile.contents(of: path) } catch { throw KeysFailure("\(path): \(error)") }
  }

  private static func lock(_ path: String) throws -> Int32 {
    let file = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0, flock(file, LOCK_EX) == 0 else { throw KeysFailure("\(path): \(words(errno))") }
    return file
  }

  private static func replace(_ path: String, with bytes: [UInt8]) throws {
    let temporary = path + ".new"
    // Keeps the mode and the owner of the old file, because the service may run as another user.
    var info = stat()
    let isNew = unsafe stat(path, &info) != 0
    let file = unsafe open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw KeysFailure("\(temporary): \(words(errno))") }
    defer { close(file) }
    if !isNew {
      fchmod(file, info.st_mode & 0o777)
      if geteuid() == 0 { _ = fchown(file, info.st_uid, info.st_gid) }
    }
    guard writeAll(bytes, to: file) == nil, fsync(file) == 0, unsafe rename(temporary, path) == 0 else {
      let number = errno
      unsafe unlink(temporary)
      throw KeysFailure("\(path): \(words(number))")
    }
    // Otherwise a power failure could bring a revoked key back.
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
    do { try FileSystem.syncFolder(folder) } catch { throw KeysFailure("\(folder): \(error)") }
  }

  private static func words(_ number: Int32) -> String { unsafe String(cString: strerror(number)) }
}

/// Why a command on keys can't do its work.
struct KeysFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
