// The bucket is listed, page by page, and the catalog is asked about each page, so memory doesn't grow with the bucket.

import Storage

extension CheckedStore {
  /// The objects of a bucket that `catalog` describes. Neither is bound to the other. Waveforms are fetched into a file
  /// at `temporary`, one after the other.
  ///
  /// Throws `.otherMedia` if the catalog describes another bucket, and the store's errors if the bucket can't be used.
  package init(_ client: S3Client, of catalog: Catalog, temporary: String) throws(StorageError) {
    try self.init(client, of: catalog, boundBy: catalog, temporary: temporary)
  }

  init(
    _ client: S3Client, of catalog: Catalog, boundBy binding: some MediaBinding, temporary: String,
    pageLength: Int = 1000
  ) throws(StorageError) {
    try StorageError.translating { () throws(S3Error) in try client.check() }
    let audit = BucketAudit(
      client: client, identity: try BucketIdentity.known(to: binding, client), pageLength: pageLength)
    // Nodes may be working.
    self.init(
      BucketStore(client, catalog: catalog), isLive: true, temporary: temporary,
      confirm: { () throws(StorageError) in try audit.checkIdentity() },
      audit: { (catalog, report, isWanted) throws(StorageError) in try audit.run(catalog, &report, while: isWanted) })
  }
}

/// Reports what is in a bucket and no row names.
private struct BucketAudit: Sendable {
  let client: S3Client
  let identity: BucketIdentity?
  let pageLength: Int

  /// The number of pages without keys, one after the other, after which a listing has no end.
  private static let emptyPageLimit = 100

  /// Throws if this is another bucket, or can't be used.
  func checkIdentity() throws(StorageError) {
    if let identity { return try identity.check(by: client) }
    try StorageError.translating { () throws(S3Error) in try client.check() }
  }

  /// Lists the bucket.
  func run(
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
