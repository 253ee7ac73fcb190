import Storage

extension S3Blobs: DescriptionStore {
  /// Puts the description of a recording with audio; see `ObjectSender.describe`.
  package func describe(_ recording: Recording) throws(StorageError) {
    if recording.audioKey != nil { try sender.describe(recording) }
  }

  /// Does nothing: there are no marks.
  package func removeMark(of id: RecordingID) {}

  /// Does nothing: the catalog isn't in the bucket.
  package func checkClaim() {}

  /// True: a bucket is for several machines.
  package var hasOtherWriters: Bool { true }

  /// What the bucket says about a recording.
  enum Description {
    case absent
    case recording(Recording)
    /// It isn't one that this version writes.
    case unreadable
  }

  func description(of id: RecordingID) throws(StorageError) -> Description {
    let key = ObjectKey.description(of: id)
    let bytes = try StorageError.translating { () throws(S3Error) -> [UInt8]? in
      do throws(S3Error) { return try client.get(key.description, 0..<Recording.descriptionLimit) } catch {
        if error == .noSuchKey { return nil }
        throw error
      }
    }
    guard let bytes else {
      try checkIdentity()
      return .absent
    }
    guard let recording = Recording(describedBy: bytes), recording.id == id else { return .unreadable }
    return .recording(recording)
  }
}
