import Glibc
import Storage

/// Puts files as objects that were announced: those longer than a part in parts, of which several are sent at a time.
struct ObjectSender: Sendable {
  let client: S3Client
  /// Gets a row for each multipart upload.
  let catalog: Catalog
  /// A number of bytes from `S3Client.leastPartBytes` on.
  let partBytes: Int64
  let threads: ThreadPool

  private enum Step: Sendable {
    case digest
    case part(Int, JoinPlan.Part)
  }

  private enum Done: Sendable {
    case digests(FileDigests)
    case part(S3Part)
  }

  /// Puts a file with these digests.
  func send(_ path: String, _ digests: FileDigests, as key: String) throws(StorageError) {
    let parts = ranges(of: digests.bytes).map(JoinPlan.Part.send)
    guard parts.count > 1 else { return try put(path, digests, as: key) }
    _ = try send(path, digests, sha256: digests.sha256, parts, as: key)
  }

  /// Puts a file that has a SHA-256 if what was written to it can be read, and returns its digests; throws `.io`
  /// otherwise. `objects` have the same bytes, in order, if any: then the store copies them. The parts are sent while
  /// the whole is read for its digests.
  func send(
    _ path: String, expecting sha256: String, joining objects: [UploadObject] = [], as key: String
  ) throws(StorageError) -> FileDigests {
    let bytes = try FileSystem.length(of: path)
    let plan = JoinPlan(objects, bytes: bytes, leastBytes: S3Client.leastPartBytes)
    let parts = plan?.parts ?? ranges(of: bytes).map(JoinPlan.Part.send)
    if plan != nil || parts.count > 1 { return try send(path, nil, sha256: sha256, parts, as: key) }
    let digests = try Self.digests(of: path, expecting: sha256)
    try put(path, digests, as: key)
    return digests
  }

  private static func digests(of path: String, expecting sha256: String) throws(StorageError) -> FileDigests {
    let digests = try FileDigests(of: path)
    guard digests.sha256 == sha256 else { throw .io(operation: "read", path: path, errno: EIO) }
    return digests
  }

  private func put(_ path: String, _ digests: FileDigests, as key: String) throws(StorageError) {
    try StorageError.translating { () throws(S3Error) in try client.put(file: path, sha256: digests.sha256, as: key) }
  }

  /// The parts of a file: at most 10,000, of whole MiB.
  private func ranges(of bytes: Int64) -> [Range<Int64>] {
    let length = max(partBytes, (bytes / (9_999 << 20) + 1) << 20)
    return stride(from: 0, to: bytes, by: Int64.Stride(length)).map { $0..<min($0 + length, bytes) }
  }

  /// Makes an object of parts. A row has them discarded if this process is killed or the store fails in between.
  private func send(
    _ path: String, _ digests: FileDigests?, sha256: String, _ parts: [JoinPlan.Part], as key: String
  ) throws(StorageError) -> FileDigests {
    let upload = try StorageError.translating { () throws(S3Error) in
      try client.beginMultipart(key, sha256: sha256)
    }
    let unfinished = UnfinishedMultipart(key: key, id: upload.id)
    do throws(StorageError) {
      try catalog.announce(unfinished)
      let steps = (digests == nil ? [Step.digest] : []) + parts.enumerated().map { Step.part($0 + 1, $1) }
      let done = try threads.map(steps) { (step) throws(StorageError) -> Done in
        switch step {
        case .digest: return .digests(try Self.digests(of: path, expecting: sha256))
        case .part(let number, let part):
          return .part(
            try StorageError.translating { () throws(S3Error) in try send(number, part, of: upload, path) })
        }
      }
      var (digests, sent) = (digests, [S3Part]())
      for result in done {
        switch result {
        case .digests(let found): digests = found
        case .part(let part): sent.append(part)
        }
      }
      guard let digests else { preconditionFailure("a file has digests") }
      try StorageError.translating { () throws(S3Error) in
        try client.complete(upload, sent, bytes: digests.bytes)
      }
      // Otherwise the collection finds that there is no such upload.
      try? catalog.forget([unfinished])
      return digests
    } catch {
      // A store that doesn't answer is left alone; the collection tries again. Also if it has just answered.
      if !error.isTransient { try? client.abort(upload) }
      throw error
    }
  }

  private func send(
    _ number: Int, _ part: JoinPlan.Part, of upload: S3Multipart, _ path: String
  ) throws(S3Error) -> S3Part {
    switch part {
    case .copy(let object, let range):
      try client.copyPart(number, of: upload, from: object.key, range, bytes: object.bytes)
    case .send(let range): try client.putPart(number, of: upload, file: path, range)
    }
  }
}
