import Glibc

extension CheckedStore {
  /// The files in a data folder.
  package init(_ media: MediaStore, isLive: Bool) {
    self.init(FolderAudit(store: media, isLive: isLive, identity: nil))
  }

  /// The files in a folder that several machines share, and that `catalog` describes. Neither is bound to the other.
  ///
  /// Throws `.otherMedia` if the catalog describes another folder, or only one of both has something, and
  /// `.unfinishedMove` if a move is filling both.
  package init(shared media: MediaStore, of catalog: Catalog) throws(StorageError) {
    let (bound, found) = (try catalog.boundMedia(), try media.knownID())
    var isOther = found == nil && bound.hasContent
    if let id = bound.id {
      isOther = isOther || found != id
    } else if !bound.hasContent {
      isOther = try media.hasRecordings()
    }
    if isOther { throw .otherMedia(path: media.directory) }
    self.init(FolderAudit(store: media, isLive: true, identity: found))
  }

  private init(_ audit: FolderAudit) {
    self.init(
      FolderStore(audit.store), isLive: audit.isLive,
      catalogName: audit.store.isShared ? "catalog" : FolderAudit.catalogFile,
      confirm: { () throws(StorageError) in try audit.checkIdentity() },
      audit: { (catalog, report, isWanted) throws(StorageError) in try audit.run(catalog, &report, while: isWanted) })
  }
}

/// Reports what is in a folder of media and no row names.
private struct FolderAudit: Sendable {
  let store: MediaStore
  let isLive: Bool
  /// The ID that a shared folder must keep; nil if it has none.
  let identity: String?

  static let catalogFile = "catalog.sqlite"

  /// Throws if a shared folder isn't the right one any more, because its disk was unmounted.
  func checkIdentity() throws(StorageError) {
    guard let identity else { return }
    guard try store.knownID() == identity else { throw .otherMedia(path: store.directory) }
  }

  /// Looks into every folder.
  func run(
    _ catalog: Catalog, _ report: inout DataCheck.Report, while isWanted: () -> Bool
  ) throws(StorageError) {
    let recordings = try names(in: "recordings")
    try checkIdentity()
    for name in recordings where RecordingID(name) == nil {
      report.note("strange_file", "recordings/" + name, "The service did not make this.")
    }
    let ids = recordings.compactMap(RecordingID.init).sorted()
    for start in stride(from: 0, to: ids.count, by: Self.batch) {
      let batch = ids[start..<min(start + Self.batch, ids.count)]
      // The files before the rows: a row names a file only once it is there.
      let files = batch.map { try? store.fileNames(of: $0) }
      let named = try catalog.filesNamed(of: batch)
      for (id, files) in zip(batch, files) {
        if let files, let named = named[id], files.allSatisfy({ Self.explains($0, of: id, named) }) { continue }
        do throws(StorageError) { try checkFolder(of: id, catalog, &report) } catch .io(let operation, _, let number) {
          report.add(
            "folder_unreadable", "recordings/\(id)",
            "The folder can't be read: \(operation) failed (errno \(number)).")
        }
      }
      guard isWanted() else { throw .cancelled }
    }
    if !store.isShared { try checkParts(catalog, &report) }
    let incoming = store.isShared ? try names(in: "incoming").map { "incoming/" + $0 } : ["incoming"]
    try noteLeftovers(incoming + ["jobs", "removed"], &report)
  }

  /// Returns the names in one of the store's folders, none if the folder is missing.
  private func names(in folder: String) throws(StorageError) -> [String] {
    do { return try FileSystem.names(in: store.directory + "/" + folder) } catch .io(_, _, ENOENT) { return [] }
  }

  /// Number of folders whose rows are read in one transaction.
  private static let batch = 500

  /// Whether a file in a recording's folder is one that a row names, the map of one, or a description.
  private static func explains(_ name: String, of id: RecordingID, _ named: Set<String>) -> Bool {
    named.contains(name) || ObjectKey(id, name).descriptionVersion != nil
      // A sound map is saved next to the file that it describes.
      || name.hasSuffix(".map") && named.contains(String(name.dropLast(4)))
  }

  private func checkFolder(
    of id: RecordingID, _ catalog: Catalog, _ report: inout DataCheck.Report
  ) throws(StorageError) {
    let (path, when) = ("recordings/\(id)", store.isShared ? "a node" : "the next start")
    // Read the mark first: it is removed only after the row exists.
    let isUnfinished = try store.isUnfinished(id)
    switch (try catalog.claim(on: id), isUnfinished) {
    case (.owned, let isMarked):
      if isMarked {
        report.note("mark_left", "\(path)/\(MediaStore.marker)", "If it stays, \(when) removes the mark.")
      }
      try noteStrangeFiles(of: id, catalog, &report)
    case (.removed, _), (.finished, _), (.unknown, true):
      report.note("half_finished", path, leftover(of: "An upload or a deletion", when))
    case (.unknown, false):
      // An upload may have made the folder just now, and the mark after it was looked for.
      let names = try store.fileNames(of: id)
      if names.isEmpty || names.contains(MediaStore.marker) {
        guard FileSystem.isFolder(store.folder(of: id)) else { return }
        report.note("half_finished", path, leftover(of: "An upload", when))
      } else if try catalog.claim(on: id) == .unknown {
        report.add("row_missing", path, "The catalog has no row for this folder.")
      }
    }
  }

  private func leftover(of work: String, _ when: String) -> String {
    let isOver = "was interrupted, and \(when) clears away what is left of it."
    return isLive ? "\(work) is in progress; or it \(isOver)" : "\(work) \(isOver)"
  }

  /// Notes files in a recording's folder that no row names. One that is about to be named may be among them at first;
  /// one that a job has just put there belongs to a recorded attempt.
  private func noteStrangeFiles(
    of id: RecordingID, _ catalog: Catalog, _ report: inout DataCheck.Report
  ) throws(StorageError) {
    var strange: Set<String> = []
    for _ in 0..<2 {
      let names = Set(try store.fileNames(of: id))
      guard try catalog.readableRecording(id) != nil, let named = try catalog.filesNamed(of: [id])[id]
      else { return }
      strange = names.filter { $0 != MediaStore.marker && !Self.explains($0, of: id, named) }
      if strange.isEmpty { return }
    }
    let attempts = try catalog.attempts(in: id)
    for name in strange.sorted() where !attempts.contains(where: { $0.includes(name) }) {
      report.note("strange_file", "recordings/\(id)/\(name)", "No row of the catalog names this file.")
    }
  }

  private func checkParts(_ catalog: Catalog, _ report: inout DataCheck.Report) throws(StorageError) {
    var sweep = SweepReport()
    for id in store.parts(&sweep) {
      do throws(StorageError) {
        guard try catalog.claim(on: id) == .unknown, try !store.isSpare(id) else { continue }
      } catch .io(_, _, ENOENT) {
        // The upload was canceled just now.
        continue
      }
      report.add("row_missing", FolderStore(store).path(of: id), "The catalog has no row for this upload.")
    }
  }

  private func noteLeftovers(_ folders: [String], _ report: inout DataCheck.Report) throws(StorageError) {
    for folder in folders {
      let count = try names(in: folder).count
      if count > 0 {
        report.note("half_finished", folder, "\(count) files or folders are in work, or were left by a crash.")
      }
    }
    let orphans = store.orphanCount()
    if orphans > 0 {
      report.note("orphaned_files", "orphaned", "\(orphans) folders or uploads are kept aside; they may be recordings.")
    }
  }
}

extension DataCheck {
  /// Checks a data folder, whose catalog it reads or, if that isn't in use, a copy of it. Blocks.
  package func run(
    in store: MediaStore, progress: (Double) -> Bool = { _ in true }
  ) throws(StorageError) -> Report {
    var report = Report()
    guard let view = try openCatalog(of: store, &report) else { return report }
    let rest = try run(CheckedStore(store, isLive: view.isLive), of: view.catalog, progress: progress)
    report.add(rest)
    return report
  }

  private func openCatalog(of store: MediaStore, _ report: inout Report) throws(StorageError) -> CatalogView? {
    let name = FolderAudit.catalogFile
    do {
      let view = try CatalogView(path: store.catalogPath)
      if view.isNew, FileSystem.isFolder(store.recordings), try store.hasRecordings() {
        throw StorageError.lostCatalog(path: store.catalogPath)
      }
      if view.isOlder {
        report.note("schema_older", name, "The next start brings the catalog of an earlier version up to date.")
      }
      return view
    } catch StorageError.lostCatalog {
      report.add("catalog_lost", name, "There are recordings, but the catalog is missing or empty.")
    } catch StorageError.damagedCatalog(_, let detail) {
      report.add("catalog_damaged", name, "The catalog is damaged: \(detail).")
    } catch {
      throw StorageError(error)
    }
    return nil
  }
}
