import Glibc

/// A local file with a whole object, which stays readable as long as this value exists.
///
/// In a folder, it is the object itself, and holding it costs nothing. A store that fetches objects into a cache keeps
/// those that are held, so hold one only while something may open the file by its path. An open file doesn't need its
/// path any more.
package struct LocalFile: Sendable {
  /// The path of the file, the same each time for one object. If there is no object, opening it fails with `ENOENT`.
  package let path: String
  private let hold: (any AnyObject & Sendable)?

  /// Creates the file at `path`, which stays as long as `hold` exists.
  package init(path: String, holding hold: (any AnyObject & Sendable)? = nil) {
    (self.path, self.hold) = (path, hold)
  }

  /// Returns what `use` makes of the path; the file stays until then. In asynchronous code, extend the lifetime of this
  /// value instead.
  package func withPath<R, Failure: Error>(_ use: (String) throws(Failure) -> R) throws(Failure) -> R {
    defer { withExtendedLifetime(self) {} }
    return try use(path)
  }
}

extension LocalFile {
  /// Returns the file's SHA-256 as 64 lower-case hexadecimal digits; nil if `goesOn`, which gets the length of each
  /// piece after it was read, returns false. With `fromDisk`, what the system has of the file in memory isn't believed,
  /// and nothing of it is kept there. Blocks.
  package func sha256(
    fromDisk: Bool, _ goesOn: (Int) throws(StorageError) -> Bool
  ) throws(StorageError) -> String? {
    defer { withExtendedLifetime(self) {} }
    return try FileDescriptor(path: path, flags: O_RDONLY | O_NOFOLLOW).digest(fromDisk: fromDisk) {
      (piece) throws(StorageError) in try goesOn(piece.count)
    }?.sha256
  }
}
