import Storage

/// Puts files as objects that were announced.
struct ObjectSender: Sendable {
  let client: S3Client
  /// Gets a row for each multipart upload.
  let catalog: Catalog

  /// Puts a file with these digests.
  func send(_ path: String, _ digests: FileDigests, as key: String) throws(StorageError) {
    guard !digests.parts.isEmpty else {
      return try StorageError.translating { () throws(S3Error) in
        try client.put(file: path, sha256: digests.sha256, as: key)
      }
    }
    try sendParts(of: digests, as: key) { (upload) throws(S3Error) in
      var parts: [S3Part] = []
      for (index, part) in digests.parts.enumerated() {
        parts.append(try client.putPart(index + 1, of: upload, file: path, part.range, sha256: part.sha256))
      }
      return parts
    }
  }

  /// Makes an object of others that have its bytes.
  func join(_ plan: JoinPlan, _ path: String, _ digests: FileDigests, as key: String) throws(StorageError) {
    try sendParts(of: digests, as: key) { (upload) throws(S3Error) in
      var parts: [S3Part] = []
      for (index, part) in plan.parts.enumerated() {
        switch part {
        case .copy(let object, let range):
          parts.append(try client.copyPart(index + 1, of: upload, from: object.key, range, bytes: object.bytes))
        case .send(let range): parts.append(try client.putPart(index + 1, of: upload, file: path, range))
        }
      }
      return parts
    }
  }

  /// Makes an object of parts. A row has them discarded if this process is killed or the store fails in between.
  private func sendParts(
    of digests: FileDigests, as key: String, _ send: (S3Multipart) throws(S3Error) -> [S3Part]
  ) throws(StorageError) {
    let upload = try StorageError.translating { () throws(S3Error) in
      try client.beginMultipart(key, sha256: digests.sha256)
    }
    let unfinished = UnfinishedMultipart(key: key, id: upload.id)
    do throws(StorageError) {
      try catalog.announce(unfinished)
      try StorageError.translating { () throws(S3Error) in
        try client.complete(upload, try send(upload), bytes: digests.bytes)
      }
    } catch {
      // A store that doesn't answer is left alone; the collection tries again. Also if it has just answered.
      if !error.isTransient { try? client.abort(upload) }
      throw error
    }
    // Otherwise the collection finds that there is no such upload.
    try? catalog.forget([unfinished])
  }
}
