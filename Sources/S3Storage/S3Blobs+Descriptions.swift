import Storage

extension S3Blobs: DescriptionStore {
  /// Puts the description of a recording with audio.
  package func describe(_ recording: Recording) throws(StorageError) {
    if recording.audioKey != nil { try store.put(recording.describedJSON, as: "\(recording.descriptionKey)") }
  }

  /// Does nothing: there are no marks.
  package func removeMark(of id: RecordingID) {}

  /// Does nothing: the catalog isn't in the bucket.
  package func checkClaim() {}

  /// Returns 0: that would take a request.
  package func newestDescription(of id: RecordingID) -> Int64 { 0 }

  /// True: a bucket is for several machines.
  package var hasOtherWriters: Bool { true }

  /// What the bucket says about a recording.
  enum Description {
    case absent
    case recording(Recording)
    /// It isn't one that this version writes.
    case unreadable
  }

  /// Returns the latest description of a recording.
  func description(of id: RecordingID) throws(StorageError) -> Description {
    guard let key = try descriptions(of: id).max(by: { $0.descriptionVersion ?? 0 < $1.descriptionVersion ?? 0 }) else {
      try checkIdentity()
      return .absent
    }
    // If it is gone, a newer one has just taken its place.
    let bytes = try store.contents(of: key.description, limit: Int(Recording.descriptionLimit)) ?? []
    guard let recording = Recording(describedBy: bytes), recording.descriptionKey == key else { return .unreadable }
    return .recording(recording)
  }

  /// Lists the descriptions of a recording.
  func descriptions(of id: RecordingID) throws(StorageError) -> [ObjectKey] {
    try store.keys(ObjectKey.descriptions(of: id), limit: .max).compactMap { ObjectKey($0) }
      .filter { $0.descriptionVersion != nil }
  }
}
