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
    let bytes = try StorageError.translating { () throws(S3Error) -> [UInt8] in
      do throws(S3Error) { return try client.get(key.description, 0..<Recording.descriptionLimit) } catch {
        // A newer one has just taken its place.
        if error == .noSuchKey { return [] }
        throw error
      }
    }
    guard let recording = Recording(describedBy: bytes), recording.descriptionKey == key else { return .unreadable }
    return .recording(recording)
  }

  /// Lists the descriptions of a recording.
  func descriptions(of id: RecordingID) throws(StorageError) -> [ObjectKey] {
    var (keys, token, last) = ([ObjectKey](), nil as String?, nil as [UInt8]?)
    repeat {
      let page = try StorageError.translating { () throws(S3Error) in
        try client.list(prefix: ObjectKey.descriptions(of: id), token: token, after: last)
      }
      keys += page.objects.compactMap { ObjectKey($0.key) }.filter { $0.descriptionVersion != nil }
      (token, last) = (page.next, page.lastKey)
    } while token != nil
    return keys
  }
}
