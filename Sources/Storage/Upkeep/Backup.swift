import GRDB
import Glibc

// A backup is a data directory of its own, which `stillwave serve` could be started on:
//
//   BACKUP/catalog.sqlite           the catalog as of one moment (VACUUM INTO)
//   BACKUP/recordings/<id>/…        the files of every recording in it
//   BACKUP/uploads/<id>.part        the acknowledged bytes of unfinished uploads
//   BACKUP/SHA256SUMS               "<64 digits>  <path>" for each file, as sha256sum -c reads it
//
// The catalog comes first and the files after it. Files never change once they have a row, so those of a recording that
// is in the catalog are the right ones whenever they are read; a recording that is deleted in between leaves the backup
// too. The backup appears under its name when all of it is on the disk; in an empty folder that was there, SHA256SUMS
// appears last.

/// Copies a data directory, while a service uses it, into a backup.
package struct Backup: Sendable {
  /// How a file gets into the backup.
  package enum Method: Sendable {
    /// By a second name for the same bytes, where both are on one disk: takes no room, and no protection against a disk
    /// that fails. Else by copying.
    case link
    case copy
  }

  /// What is in a backup that was made.
  package struct Report: Sendable, Equatable {
    /// How many recordings.
    package var recordings = 0
    /// How many unfinished uploads.
    package var uploads = 0
    /// How many files, the catalog among them.
    package var files = 0
    /// How long they are together, but for the catalog.
    package var bytes: Int64 = 0
    /// Recordings that the disk has damaged: their row can't be read, or their audio was lost or changed before the
    /// backup.
    package var damaged: [RecordingID] = []
  }

  /// The name of the list of checksums.
  static let sums = "SHA256SUMS"

  private let source: String
  private let destination: String
  private let method: Method

  /// A backup of the data directory `source` at `destination`, which must not exist or be an empty folder.
  package init(of source: String, to destination: String, method: Method = .link) {
    (self.source, self.destination, self.method) = (source, destination, method)
  }

  /// Makes the backup. Reads every file once for its checksum. After each recording, `progress` is given the share of
  /// them that is done, 0 … 1, and returns whether to go on.
  ///
  /// Throws `.damagedCatalog` or `.lostCatalog` where there is no catalog to go by, `.cancelled`, `.diskFull`, `.io`;
  /// nothing is left then. Blocks.
  package func make(progress: (Double) -> Bool = { _ in true }) throws(StorageError) -> Report {
    let catalogPath = source + "/catalog.sqlite"
    guard try Catalog.inspect(path: catalogPath, withinSeconds: 3600) != .new else {
      throw .lostCatalog(path: catalogPath)
    }
    var folder = try TemporaryDirectory(for: destination, lastFile: Self.sums)
    try copyCatalog(from: catalogPath, to: folder.path + "/catalog.sqlite")
    var contents = BackupContents(folder: folder.path, method: method)
    let report = try contents.take(from: source, progress: progress)
    try folder.commit()
    return report
  }

  private func copyCatalog(from path: String, to copy: String) throws(StorageError) {
    do {
      var configuration = Configuration()
      configuration.busyMode = .timeout(30)
      let live = try DatabaseQueue(path: path, configuration: configuration)
      defer { try? live.close() }
      try live.writeWithoutTransaction { try $0.execute(sql: "VACUUM INTO ?", arguments: [copy]) }
    } catch {
      throw StorageError(error).naming(path)
    }
    FileSystem.makePrivate(copy)
    try FileDescriptor(path: copy, flags: O_RDWR).sync()
  }
}

/// A backup in the making.
private struct BackupContents {
  let folder: String
  let method: Backup.Method
  private var report = Backup.Report()
  private var sums: [String] = []

  init(folder: String, method: Backup.Method) {
    (self.folder, self.method) = (folder, method)
  }

  /// Takes the files that the copied catalog names from the data directory `source`.
  mutating func take(from source: String, progress: (Double) -> Bool) throws(StorageError) -> Backup.Report {
    let catalog = try Catalog(path: folder + "/catalog.sqlite")
    for name in ["recordings", "uploads"] { try FileSystem.makeFolder(folder + "/" + name) }
    let all = try catalog.recordings(limit: .max)
    for (index, recording) in all.enumerated() {
      try take(recording, from: source + "/recordings/" + recording.id.text, catalog)
      guard progress(Double(index + 1) / Double(all.count)) else { throw .cancelled }
    }
    for id in try catalog.unreadableRecordings().compactMap(RecordingID.init) {
      try take(unreadable: id, from: source + "/recordings/" + id.text)
    }
    for upload in try catalog.unfinishedUploads() { try take(upload, from: source, catalog) }
    // What the copy lacks has no files in the backup; noted as removals, those ids would only grow old in it.
    try catalog.forgetRemovals(catalog.removals())
    try catalog.close()
    for name in ["recordings", "uploads"] { try FileSystem.syncFolder(folder + "/" + name) }
    try note("catalog.sqlite", digest: measure("catalog.sqlite").sha256)
    let list = sums.sorted { $0.dropFirst(66) < $1.dropFirst(66) }.map { $0 + "\n" }.joined()
    try FileSystem.replace(folder + "/" + Backup.sums, with: Array(list.utf8))
    return report
  }

  private mutating func take(_ recording: Recording, from source: String, _ catalog: Catalog) throws(StorageError) {
    // A job still makes it, or was to: there is nothing to copy yet.
    guard let audio = recording.audioFile else { return }
    let inner = "recordings/" + recording.id.text
    let taken = try copyFiles(from: source, to: inner)
    guard taken.contains(audio) else {
      // A deletion takes the folder away whole. A row without its sound is of use to nobody here.
      if FileSystem.isFolder(source) { report.damaged.append(recording.id) }
      try FileSystem.remove(folder + "/" + inner)
      _ = try catalog.deleteRecording(recording.id)
      sums.removeAll { $0.dropFirst(66).hasPrefix(inner + "/") }
      return
    }
    for name in taken {
      let found = try measure(inner + "/" + name)
      if name == audio, found.sha256 != recording.sha256 { report.damaged.append(recording.id) }
      try note(inner + "/" + name, digest: found.sha256)
      report.bytes += found.bytes
    }
    try FileSystem.syncFolder(folder + "/" + inner)
    report.recordings += 1
  }

  /// The row stays in the copied catalog as it is. The folder's description lets the next start write it again.
  private mutating func take(unreadable id: RecordingID, from source: String) throws(StorageError) {
    report.damaged.append(id)
    let inner = "recordings/" + id.text
    for name in try copyFiles(from: source, to: inner) {
      let found = try measure(inner + "/" + name)
      try note(inner + "/" + name, digest: found.sha256)
      report.bytes += found.bytes
    }
    try FileSystem.syncFolder(folder + "/" + inner)
  }

  /// Copies the files of a recording, and returns their names; none where the folder is gone.
  private func copyFiles(from source: String, to inner: String) throws(StorageError) -> Set<String> {
    try FileSystem.makeFolder(folder + "/" + inner)
    var taken: Set<String> = []
    do {
      for name in try FileSystem.names(in: source) where Backup.isOwnFile(name) {
        if try copy(source + "/" + name, to: inner + "/" + name) { taken.insert(name) }
      }
    } catch .io(_, _, ENOENT) {
      // Deleted meanwhile, or lost.
    }
    return taken
  }

  /// A part grows and is cut back while it is copied; what counts is its beginning, which stays as it is.
  private mutating func take(_ upload: Upload, from source: String, _ catalog: Catalog) throws(StorageError) {
    let inner = "uploads/" + upload.id.text + ".part"
    do {
      try FileSystem.copy(source + "/" + inner, to: folder + "/" + inner, bytes: upload.offset)
    } catch .io(_, _, ENOENT) {
      _ = try catalog.deleteUpload(upload.id)
      return
    }
    let found = try measure(inner)
    try note(inner, digest: found.sha256)
    report.uploads += 1
    report.bytes += found.bytes
  }

  /// False where the file is gone.
  private func copy(_ path: String, to inner: String) throws(StorageError) -> Bool {
    do {
      if method == .link {
        do {
          try FileSystem.link(path, to: folder + "/" + inner)
          return true
        } catch .io(_, _, let number) where [EXDEV, EPERM, EMLINK, EOPNOTSUPP].contains(number) {
          // Another disk, or one without links.
        }
      }
      try FileSystem.copy(path, to: folder + "/" + inner)
      return true
    } catch .io(_, _, ENOENT) {
      return false
    }
  }

  private func measure(_ inner: String) throws(StorageError) -> (bytes: Int64, sha256: String) {
    try MediaStore.measure(FileDescriptor(path: folder + "/" + inner, flags: O_RDONLY))
  }

  private mutating func note(_ inner: String, digest: String) throws(StorageError) {
    sums.append("\(digest)  \(inner)")
    report.files += 1
  }
}

extension Backup {
  /// Whether a file in a recording's folder is one that the service has made and finished.
  static func isOwnFile(_ name: String) -> Bool {
    MediaStore.isFileName(name) && name != MediaStore.marker && !name.hasSuffix(".new")
      && name.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") }
  }
}
