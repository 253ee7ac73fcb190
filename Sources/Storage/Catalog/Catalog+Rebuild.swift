import GRDB

extension Catalog {
  /// Changes a recording if `isExpected` finds it as it should be; with `job`, which reads the recording, inserts that
  /// in the same transaction. The recording as it is then; nil, and nothing is changed, where it is gone or another.
  package func update(
    _ id: RecordingID, if isExpected: (Recording) -> Bool, inserting job: Job?, _ change: (inout Recording) -> Void
  ) throws(StorageError) -> Recording? {
    try write { db in
      guard let recording = try Self.recording(id, db), isExpected(recording) else { return nil }
      if let job { try Self.insert(job, db) }
      return try Self.update(id, db, change)
    }
  }
}
