import Glibc

// The catalog is put in place last, because no service starts with recordings but no catalog.

/// Restores a data directory from a backup.
package struct Restoration: Sendable {
  /// The result of restoring a backup.
  package struct Report: Sendable, Equatable {
    /// Number of files restored.
    package var files = 0
    /// Total length of the files, in bytes.
    package var bytes: Int64 = 0
    /// Paths of files that are missing from the backup or don't match its list of checksums.
    package var damaged: [String] = []
  }

  private let backup: String
  private let destination: String
  private let keepsDamaged: Bool
  /// Why a file of a damaged backup can't be read: it is missing, on a bad part of the disk, or something else.
  private static let damage = [ENOENT, EIO, EISDIR, ENOTDIR, ELOOP, ENXIO]

  /// Restores the folder `backup` to `destination`, which must not exist or must be empty. With `keepsDamaged`,
  /// restores whatever is left of a damaged backup.
  package init(of backup: String, to destination: String, keepsDamaged: Bool = false) {
    (self.backup, self.destination, self.keepsDamaged) = (backup, destination, keepsDamaged)
  }

  /// Checks every file of the backup against its list and copies it. If anything is damaged, nothing is restored,
  /// except with `keepsDamaged`; the report lists the damage.
  ///
  /// After each file, calls `progress` with the fraction done, 0 … 1; it returns whether to continue. Throws `.corrupt`
  /// if the backup has no readable list, or `.damagedCatalog`, `.cancelled`, `.diskFull`, or `.io`, leaving nothing
  /// behind. Blocks.
  package func run(progress: (Double) -> Bool = { _ in true }) throws(StorageError) -> Report {
    let list = try ChecksumList(path: backup + "/" + Backup.sums)
    var report = Report()
    var folder = try TemporaryDirectory(for: destination, lastFile: "catalog.sqlite")
    for (index, (path, digest)) in list.entries.enumerated() {
      do {
        let copy = folder.path + "/" + path
        try FileSystem.makeFolders(FileSystem.parent(of: copy))
        let found = try FileSystem.copy(backup + "/" + path, to: copy)
        if found.sha256 != digest { report.damaged.append(path) }
        report.files += 1
        report.bytes += found.bytes
      } catch .io(_, backup + "/" + path, let number) where Self.damage.contains(number) {
        // What was read of it stays.
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
    // Files that SQLite created when reading it.
    for suffix in ["-wal", "-shm"] { _ = try FileSystem.removeFile(path + suffix) }
  }

  /// Syncs the names; the files were synced when they were copied.
  private func sync(_ folder: String) throws(StorageError) {
    for name in try FileSystem.names(in: folder) where FileSystem.isFolder(folder + "/" + name) {
      try sync(folder + "/" + name)
    }
    try FileSystem.syncFolder(folder)
  }
}

/// A list in `sha256sum` format: 64 hexadecimal digits, two spaces, a path, a line feed.
struct ChecksumList {
  let entries: [(path: String, digest: String)]

  /// Maximum length of a list, in bytes: enough for millions of files.
  private static let byteLimit: Int64 = 1 << 30

  /// Throws `.corrupt` if a line has another form, or a path leads out of the folder.
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
