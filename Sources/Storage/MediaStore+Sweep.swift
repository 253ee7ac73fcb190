import Glibc

/// What a sweep found and did.
public struct SweepReport: Sendable, Equatable {
  /// Uploads that never became recordings.
  public var incoming = 0
  /// Parts of resumable uploads that no row owns.
  public var uploads = 0
  /// Folders of recordings that no row owns, or that were on their way out.
  public var recordings = 0
  /// Work folders that no job will use again.
  public var jobs = 0
  /// What could not be listed or removed.
  public var failures: [StorageError] = []
}

extension MediaStore {
  /// Removes what a crash has left: parts of uploads, folders on their way out, and what `uploads`, `recordings` or
  /// `jobs` says false for. A work folder that another process holds (flock) is one that an orphan of an earlier run still
  /// works in: it stays, so that the job's next worker meets that lock and not an empty folder beside it.
  ///
  /// At start-up only, after `claim()` and before the first upload or job. Only names that the store itself gives are
  /// touched: a stranger's file in the data directory stays. Never throws, as a service can serve beside leftovers; a
  /// caller whose catalogue fails to answer says true.
  @discardableResult
  public func sweep(
    uploads ownsUpload: (UploadID) -> Bool = { _ in true }, recordings ownsRecording: (RecordingID) -> Bool,
    jobs ownsJob: (JobID) -> Bool
  ) -> SweepReport {
    var report = SweepReport()
    let suffix = ".part"
    report.incoming = clear(incoming, &report.failures) {
      $0.hasSuffix(suffix) && UUIDv7(String($0.dropLast(suffix.count))) != nil
    }
    report.uploads = clear(uploads, &report.failures) { name in
      name.hasSuffix(suffix) && UploadID(String(name.dropLast(suffix.count))).map { !ownsUpload($0) } ?? false
    }
    report.recordings = clear(removed, &report.failures) { UUIDv7($0) != nil }
    report.recordings += clear(recordings, &report.failures) { name in
      RecordingID(name).map { !ownsRecording($0) } ?? false
    }
    report.jobs = clear(jobs, &report.failures) { name in
      JobID(name).map { !ownsJob($0) && !isHeld($0) } ?? false
    }
    return report
  }

  private func isHeld(_ id: JobID) -> Bool {
    do { return try !FileDescriptor(path: workFolder(of: id), flags: O_RDONLY | O_DIRECTORY).lock() } catch {
      return false
    }
  }

  /// Removes what `isLeftover` picks from a folder; how many.
  private func clear(_ folder: String, _ failures: inout [StorageError], _ isLeftover: (String) -> Bool) -> Int {
    var count = 0
    do {
      for name in try FileSystem.names(in: folder) where isLeftover(name) {
        do {
          try FileSystem.remove(folder + "/" + name)
          count += 1
        } catch {
          failures.append(error)
        }
      }
    } catch {
      failures.append(error)
    }
    return count
  }
}
