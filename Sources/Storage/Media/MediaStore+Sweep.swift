import Glibc

/// What startup found of earlier runs, and what it did about it.
package struct SweepReport: Sendable, Equatable {
  /// Number of uploads removed because they never became recordings.
  package var incoming = 0
  /// Number of removed parts of resumable uploads: empty ones, and those whose upload has ended.
  package var uploads = 0
  /// Number of removed folders of recordings: marked as unfinished, or already being removed.
  package var recordings = 0
  /// Number of removed work folders that no job will use again.
  package var jobs = 0
  /// Number of recordings whose lost row was restored.
  package var adopted = 0
  /// Number of unexplained folders and uploads that were set aside.
  package var orphans = 0
  /// Number of unreadable rows restored from the description in the recording's folder.
  package var healed = 0
  /// Number of unreadable rows of recordings without a description.
  package var unreadable = 0
  /// Number of unreadable rows of jobs, uploads, and webhooks that were deleted.
  package var forgotten = 0
  /// Whether the catalog couldn't be checked in time, so that nothing was removed on the basis of its contents.
  package var isUnverified = false
  /// Errors in listing, moving, or removing files.
  package var failures: [StorageError] = []

  /// Creates an empty report.
  package init() {}
}

extension MediaStore {
  /// Removes files that their location identifies as unfinished: plain uploads being received, folders being removed,
  /// and work folders of jobs. A work folder locked (flock) by another process is still in use by an orphaned process
  /// of an earlier run. It stays, so that the job's next worker encounters the lock instead of an empty folder next to
  /// it.
  ///
  /// Call it only at startup, after `claim()` and before the first upload or job. Touches only names that the store
  /// itself assigns, so other files in the data directory stay. Doesn't throw, because a service can run despite
  /// leftovers.
  func removeHalfFinished(_ report: inout SweepReport) {
    removeIncoming(&report)
    report.recordings += clear(removed, &report) { UUIDv7($0) != nil }
    report.jobs = clear(jobs, &report) { name in JobID(name).map { !isHeld($0) } ?? false }
  }

  /// Removes plain uploads that this process, or an earlier one in its place, was receiving.
  func removeIncoming(_ report: inout SweepReport) {
    report.incoming = clear(incoming, &report) { Self.isNamed($0, ".part") }
    removeIntakeFolders(&report)
  }

  /// Removes the work folders of workers that take in short uploads, all of them: none may be in use any more. What
  /// can't be removed is left to the next start.
  package func removeIntakeFolders() {
    spareFolders.withLock { $0 = [] }
    var report = SweepReport()
    removeIntakeFolders(&report)
  }

  private func removeIntakeFolders(_ report: inout SweepReport) {
    _ = clear(incoming, &report) { Self.isNamed($0, Self.intakeSuffix) }
  }

  private static func isNamed(_ name: String, _ suffix: String) -> Bool {
    name.hasSuffix(suffix) && UUIDv7(String(name.dropLast(suffix.count))) != nil
  }

  /// Returns all IDs that have a folder among the recordings.
  func recordingFolders(_ report: inout SweepReport) -> [RecordingID] {
    names(in: recordings, &report).compactMap(RecordingID.init)
  }

  /// Returns all IDs that have a part among the uploads.
  func parts(_ report: inout SweepReport) -> [UploadID] {
    names(in: uploads, &report).compactMap { name in
      name.hasSuffix(".part") ? UploadID(String(name.dropLast(".part".count))) : nil
    }
  }

  /// Whether the bytes of a part are no longer needed: there are none, or they also have another name.
  func isSpare(_ id: UploadID) throws(StorageError) -> Bool {
    let path = path(ofPart: id)
    var info = stat()
    guard unsafe stat(path, &info) == 0 else { throw StorageError(errno: errno, "stat", path) }
    return info.st_size == 0 || info.st_nlink > 1
  }

  func isHeld(_ id: JobID) -> Bool {
    do { return try !FileDescriptor(path: workFolder(of: id), flags: O_RDONLY | O_DIRECTORY).lock() } catch {
      return false
    }
  }

  /// Removes the entries of a folder that `isLeftover` selects; returns their number.
  private func clear(_ folder: String, _ report: inout SweepReport, _ isLeftover: (String) -> Bool) -> Int {
    var count = 0
    for name in names(in: folder, &report) where isLeftover(name) {
      do {
        try FileSystem.remove(folder + "/" + name)
        count += 1
      } catch {
        report.failures.append(error)
      }
    }
    return count
  }

  private func names(in folder: String, _ report: inout SweepReport) -> [String] {
    do { return try FileSystem.names(in: folder) } catch {
      report.failures.append(error)
      return []
    }
  }
}
