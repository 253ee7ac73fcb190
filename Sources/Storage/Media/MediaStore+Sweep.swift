import Glibc

/// What a start found of earlier runs, and what became of it.
package struct SweepReport: Sendable, Equatable {
  /// Uploads that never became recordings, removed.
  package var incoming = 0
  /// Parts of resumable uploads that were removed: empty ones, and those whose upload has ended.
  package var uploads = 0
  /// Folders of recordings that were removed: marked as unfinished, or on their way out.
  package var recordings = 0
  /// Work folders that no job will use again, removed.
  package var jobs = 0
  /// Recordings that had lost their row and have one again.
  package var adopted = 0
  /// What nothing explains, kept aside.
  package var orphans = 0
  /// Rows that could not be read, written again from their folder's description.
  package var healed = 0
  /// Rows of recordings that can't be read and have no description.
  package var unreadable = 0
  /// Rows of jobs, uploads and webhooks that could not be read, deleted.
  package var forgotten = 0
  /// Whether the catalog could not be checked in time, so that nothing was removed because of what it says.
  package var isUnverified = false
  /// What could not be listed, moved or removed.
  package var failures: [StorageError] = []

  /// Nothing yet.
  package init() {}
}

extension MediaStore {
  /// Removes the files that are half-finished by the place they are in: plain uploads on their way in, folders on their
  /// way out, and work folders of jobs. A work folder that another process holds (flock) is one that an orphan of an
  /// earlier run still works in: it stays, so that the job's next worker meets that lock and not an empty folder beside
  /// it.
  ///
  /// At start-up only, after `claim()` and before the first upload or job. Only names that the store itself gives are
  /// touched: a stranger's file in the data directory stays. Never throws, as a service can serve beside leftovers.
  func removeHalfFinished(_ report: inout SweepReport) {
    let suffix = ".part"
    report.incoming = clear(incoming, &report) {
      $0.hasSuffix(suffix) && UUIDv7(String($0.dropLast(suffix.count))) != nil
    }
    report.recordings += clear(removed, &report) { UUIDv7($0) != nil }
    report.jobs = clear(jobs, &report) { name in JobID(name).map { !isHeld($0) } ?? false }
  }

  /// Every id that has a folder among the recordings.
  func recordingFolders(_ report: inout SweepReport) -> [RecordingID] {
    names(in: recordings, &report).compactMap(RecordingID.init)
  }

  /// Every id that has a part among the uploads.
  func parts(_ report: inout SweepReport) -> [UploadID] {
    names(in: uploads, &report).compactMap { name in
      name.hasSuffix(".part") ? UploadID(String(name.dropLast(".part".count))) : nil
    }
  }

  /// Whether the bytes of a part are of no further use to anyone: there are none, or they have another name as well.
  func isSpare(_ id: UploadID) throws(StorageError) -> Bool {
    let path = path(ofPart: id)
    var info = stat()
    guard unsafe stat(path, &info) == 0 else { throw StorageError(errno: errno, "stat", path) }
    return info.st_size == 0 || info.st_nlink > 1
  }

  private func isHeld(_ id: JobID) -> Bool {
    do { return try !FileDescriptor(path: workFolder(of: id), flags: O_RDONLY | O_DIRECTORY).lock() } catch {
      return false
    }
  }

  /// Removes what `isLeftover` picks from a folder; how many.
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
