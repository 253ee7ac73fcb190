// Each object is looked at by a HEAD, and read by a GET that keeps nothing but the digest; only waveforms come into a
// file, one at a time. Then the bucket is listed, page by page, and the catalog is asked about each page, so memory
// doesn't grow with the bucket.

import Glibc
import Storage

/// The media in a bucket, as a check sees them.
package struct CheckedBucket: CheckedMedia {
  private let client: S3Client
  private let identity: BucketIdentity?
  private let temporary: String
  private let pageLength: Int

  /// Checks the objects of a bucket that `catalog` describes. Neither is bound to the other. Waveforms are fetched into
  /// a file at `temporary`, one after the other.
  ///
  /// Throws `.otherMedia` if the catalog describes another bucket, and the store's errors if the bucket can't be used.
  package init(_ client: S3Client, of catalog: Catalog, temporary: String) throws(StorageError) {
    try self.init(client, boundTo: catalog, temporary: temporary)
  }

  init(
    _ client: S3Client, boundTo catalog: some MediaBinding, temporary: String, pageLength: Int = 1000
  ) throws(StorageError) {
    (self.client, self.temporary, self.pageLength) = (client, temporary, pageLength)
    try StorageError.translating { () throws(S3Error) in try client.check() }
    identity = try BucketIdentity.known(to: catalog, client)
  }

  /// The catalog is on a server.
  package var catalogName: String { "catalog" }

  /// True: nodes may be working.
  package var isLive: Bool { true }

  /// What the keys of its pieces begin with.
  package func path(of upload: UploadID) -> String { "uploads/\(upload)" }

  /// Costs a request, and two more if there is no object.
  package func length(of key: ObjectKey) throws(StorageError) -> FoundFile<Int64> {
    try found { () throws(S3Error) in try client.head("\(key)")?.bytes }
  }

  /// Receives the object.
  package func sha256(of key: ObjectKey, bytes: Int64) throws(StorageError) -> FoundFile<String> {
    try found { () throws(S3Error) in try client.digest(of: "\(key)", bytes: bytes).sha256 }
  }

  /// Fetches the object into a file, which is then removed.
  package func fault(in key: ObjectKey, _ fault: (String) -> String?) throws(StorageError) -> FoundFile<String?> {
    defer { TransferFile.remove(temporary) }
    return try found { () throws(S3Error) in
      guard let bytes = try client.head("\(key)")?.bytes else { return nil }
      _ = try client.get("\(key)", into: temporary, bytes: bytes)
      return .some(fault(temporary))
    }
  }

  /// Costs a request.
  package func isDescribed(_ recording: Recording) throws(StorageError) -> Bool {
    guard recording.audioKey != nil else { return true }
    let key = ObjectKey.description(of: recording.id)
    let found = try found { () throws(S3Error) -> [UInt8]? in
      try client.get("\(key)", 0..<Recording.descriptionLimit)
    }
    guard case .present(let bytes) = found else { return false }
    return recording.isDescribed(by: bytes)
  }

  /// Costs a request for each piece.
  package func hasBytes(of upload: Upload, _ catalog: Catalog) throws(StorageError) -> Bool {
    var place: Int64 = 0
    for object in try catalog.objects(of: upload.id) {
      let bytes = try found { () throws(S3Error) in try client.head(object.key)?.bytes }
      guard object.start == place, bytes == .present(object.bytes) else { return false }
      place = object.end
    }
    return place == upload.offset
  }

  /// Returns what `body` finds; nil stands for a missing object. An object is missing, or only that one can't be read,
  /// if this is the right bucket and its identity can be read.
  private func found<Content>(_ body: () throws(S3Error) -> Content?) throws(StorageError) -> FoundFile<Content> {
    var reason: String?
    do throws(S3Error) {
      if let content = try body() { return .present(content) }
    } catch {
      switch error {
      case .noSuchKey: break
      case .file: throw StorageError(error)
      case _ where error.isTransient: throw StorageError(error)
      default: reason = "\(error)"
      }
    }
    try checkIdentity()
    return reason.map { .unreadable(reason: $0) } ?? .absent
  }

  private func checkIdentity() throws(StorageError) {
    if let identity { return try identity.check(by: client) }
    try StorageError.translating { () throws(S3Error) in try client.check() }
  }

  // MARK: What is there

  /// Lists the bucket.
  package func audit(
    _ catalog: Catalog, _ report: inout DataCheck.Report, while isWanted: () -> Bool
  ) throws(StorageError) {
    var tally = StrayTally()
    var token: String?
    repeat {
      let page = try list(token)
      let unnamed = try catalog.unnamed(among: page.objects.map(\.key)).filter { $0.key != BucketIdentity.key }
      if !unnamed.isEmpty {
        let lengths = try lengths(of: unnamed, listedAgainAfter: token)
        for object in unnamed {
          if let bytes = lengths[object.key] { tally.add(object, bytes: bytes, &report) }
        }
      }
      token = page.next
      guard isWanted() else { throw .cancelled }
    } while token != nil
    tally.end(&report)
    try checkIdentity()
    guard tally.count > 0 else { return }
    report.note(
      "stray_objects", "s3://\(client.bucket.name)/\(client.bucket.prefix)",
      "\(tally.count) objects with \(tally.bytes) bytes are not named by the catalog. Nothing removes them.")
  }

  private func list(_ token: String?) throws(StorageError) -> S3Page {
    try StorageError.translating { () throws(S3Error) in try client.list(token: token, limit: pageLength) }
  }

  /// Returns the lengths of those objects of a page that are still there. A node may have removed some after the page
  /// was listed, and then forgotten that they were to be removed.
  private func lengths(
    of objects: [UnnamedObject], listedAgainAfter token: String?
  ) throws(StorageError) -> [String: Int64] {
    var lengths = Dictionary(try list(token).objects.map { ($0.key, $0.bytes) }) { $1 }
    // New objects may have displaced the last ones.
    for object in objects where lengths[object.key] == nil {
      lengths[object.key] = try StorageError.translating { () throws(S3Error) in try client.head(object.key)?.bytes }
    }
    return lengths
  }

  /// The objects so far that no row names. Those of one recording come one after the other.
  private struct StrayTally {
    var (count, bytes) = (0, Int64(0))
    private var lost: (id: RecordingID, count: Int, bytes: Int64)?

    mutating func add(_ object: UnnamedObject, bytes: Int64, _ report: inout DataCheck.Report) {
      if let id = object.lostRecording {
        if lost?.id != id { end(&report) }
        lost = (id, (lost?.count ?? 0) + 1, (lost?.bytes ?? 0) + bytes)
        return
      }
      count += 1
      self.bytes += bytes
      report.note("stray_object", object.key, "No row of the catalog names this object of \(bytes) bytes.")
    }

    /// Reports the recording that the last objects belong to.
    mutating func end(_ report: inout DataCheck.Report) {
      guard let lost else { return }
      report.add(
        "row_missing", "recordings/\(lost.id)",
        "The catalog has no row for \(lost.count) objects with \(lost.bytes) bytes. They may be a recording that is "
          + "newer than the catalog.")
      self.lost = nil
    }
  }
}
