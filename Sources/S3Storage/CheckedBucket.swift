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

  /// The number of pages without keys, one after the other, after which a listing has no end.
  private static let emptyPageLimit = 100

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
    let key = recording.descriptionKey
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
    var (token, last, emptyPages) = (nil as String?, nil as [UInt8]?, 0)
    repeat {
      let page = try list(token, after: last)
      emptyPages = page.objects.isEmpty ? emptyPages + 1 : 0
      guard emptyPages < Self.emptyPageLimit else {
        throw StorageError(S3Error.malformedAnswer(what: "ListBucketResult"))
      }
      let unnamed = try catalog.unnamed(among: page.objects.map(\.key)).filter { $0.key != BucketIdentity.key }
      if !unnamed.isEmpty {
        let lengths = try lengths(of: unnamed, listedAgainFrom: token, after: last)
        for object in unnamed {
          if let bytes = lengths[object.key] { tally.add(object, bytes: bytes, &report) }
        }
      }
      (token, last) = (page.next, page.lastKey)
      guard isWanted() else { throw .cancelled }
    } while token != nil
    tally.end(&report)
    try checkIdentity()
    guard tally.count > 0 else { return }
    report.note(
      "stray_objects", "s3://\(client.bucket.name)/\(client.bucket.prefix)",
      "\(tally.count) objects with \(tally.bytes) bytes are not named by the catalog. Nothing removes them.")
  }

  private func list(_ token: String?, after last: [UInt8]?) throws(StorageError) -> S3Page {
    try StorageError.translating { () throws(S3Error) in
      try client.list(token: token, after: last, limit: pageLength)
    }
  }

  /// Returns the lengths of those objects of a page that are still there. A node may have removed some after the page
  /// was listed, and then forgotten that they were to be removed.
  private func lengths(
    of objects: [UnnamedObject], listedAgainFrom token: String?, after last: [UInt8]?
  ) throws(StorageError) -> [String: Int64] {
    var lengths = Dictionary(try list(token, after: last).objects.map { ($0.key, $0.bytes) }) { $1 }
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
        lost = (id, (lost?.count ?? 0) + 1, Self.sum(lost?.bytes ?? 0, bytes))
        return
      }
      count += 1
      self.bytes = Self.sum(self.bytes, bytes)
      report.note("stray_object", object.key, "No row of the catalog names this object of \(bytes) bytes.")
    }

    /// The store may say any lengths.
    private static func sum(_ one: Int64, _ other: Int64) -> Int64 {
      let (sum, overflows) = one.addingReportingOverflow(other)
      return overflows ? .max : sum
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
