import Glibc

// The catalog comes to its place last: without it beside recordings, no service starts.

/// Makes a data directory of a backup.
package struct Restoration: Sendable {
  /// What was found.
  package struct Report: Sendable, Equatable {
    /// How many files were restored.
    package var files = 0
    /// How long they are together.
    package var bytes: Int64 = 0
    /// Files that are missing from the backup or are not what its list of checksums says, by path within it.
    package var damaged: [String] = []
  }

  private let backup: String
  private let destination: String
  private let keepsDamaged: Bool

  /// Of the folder `backup`, at `destination`, which must not exist or be an empty folder. With `keepsDamaged`, what is
  /// left of a damaged backup is restored all the same.
  package init(of backup: String, to destination: String, keepsDamaged: Bool = false) {
    (self.backup, self.destination, self.keepsDamaged) = (backup, destination, keepsDamaged)
  }

  /// Checks every file of the backup against its list, and copies it. Where anything is damaged nothing is restored,
  /// unless that was asked for; the report says what is.
  ///
  /// After each file, `progress` is given the share of them that is done, 0 … 1, and returns whether to go on. Throws
  /// `.corrupt` where the backup has no list that can be read, `.damagedCatalog`, `.cancelled`, `.diskFull`, `.io`;
  /// nothing is left then. Blocks.
  package func run(progress: (Double) -> Bool = { _ in true }) throws(StorageError) -> Report {
    let list = try ChecksumList(path: backup + "/" + Backup.sums)
    var report = Report()
    var folder = try TemporaryDirectory(for: destination, lastFile: "catalog.sqlite")
    for (index, (path, digest)) in list.entries.enumerated() {
      do {
        let copy = folder.path + "/" + path
        try FileSystem.makeFolders(FileSystem.parent(of: copy))
        try FileSystem.copy(backup + "/" + path, to: copy)
        let found = try MediaStore.measure(FileDescriptor(path: copy, flags: O_RDONLY))
        if found.sha256 != digest { report.damaged.append(path) }
        report.files += 1
        report.bytes += found.bytes
      } catch .io(_, _, ENOENT) {
        report.damaged.append(path)
      }
      guard progress(Double(index + 1) / Double(list.entries.count)) else { throw .cancelled }
    }
    guard report.damaged.isEmpty || keepsDamaged else { return report }
    if !keepsDamaged { try checkCatalog(folder.path + "/catalog.sqlite") }
    try sync(folder.path)
    try folder.commit()
    return report
  }

  private func checkCatalog(_ path: String) throws(StorageError) {
    guard try Catalog.inspect(path: path, withinSeconds: 3600) != .new else {
      throw .lostCatalog(path: backup + "/catalog.sqlite")
    }
    // What SQLite made to read it.
    for suffix in ["-wal", "-shm"] { _ = try FileSystem.removeFile(path + suffix) }
  }

  /// The files were synced as they were copied; here their names are.
  private func sync(_ folder: String) throws(StorageError) {
    for name in try FileSystem.names(in: folder) where FileSystem.isFolder(folder + "/" + name) {
      try sync(folder + "/" + name)
    }
    try FileSystem.syncFolder(folder)
  }
}

/// A list as `sha256sum` writes it: 64 hexadecimal digits, two blanks, a path, a line feed.
struct ChecksumList {
  let entries: [(path: String, digest: String)]

  /// Longest list that is read, in bytes: some millions of files.
  private static let byteLimit: Int64 = 1 << 30

  /// Throws `.corrupt` for a line of another form, or a path that leads out of the folder.
  init(path: String) throws(StorageError) {
    let text = String(decoding: try FileSystem.contents(of: path, limit: Self.byteLimit), as: UTF8.self)
    var entries: [(path: String, digest: String)] = []
    for line in text.split(separator: "\n") {
      let (digest, path) = (line.prefix(64), line.dropFirst(66))
      let parts = path.split(separator: "/", omittingEmptySubsequences: false)
      guard line.dropFirst(64).prefix(2) == "  ", digest.utf8.count == 64, digest.allSatisfy(\.isHexDigit),
        parts.allSatisfy({ MediaStore.isFileName(String($0)) })
      else { throw .corrupt(column: Backup.sums, value: String(line.prefix(200))) }
      entries.append((String(path), String(digest)))
    }
    self.entries = entries
  }
}
