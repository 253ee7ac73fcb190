// Resumable uploads in a bucket, below the prefix of its address:
//
//   uploads/<id>/<start>-<random>     some bytes of an unfinished upload, from `start` on
//
// Such an object is never written twice, and no multipart upload is left open between requests: a node that was cut off
// could rewrite a part of it. An offset is reported after
//
//   1. the row of `garbage`: unneeded in a day, unless the upload's row names it by then  2. the object
//   3. the row of `upload_objects` and the new offset, in one transaction that only the upload's writer can commit
//
// Requests may bring few bytes each, and each one's end makes an object. So the last ones are put again as part of the
// next, under its key, as long as they are short and at least as many bytes follow: the row names it in their place.
//
// So any node can take the upload over at its offset, and what an earlier one still puts counts for nothing and goes a
// day later. The node that receives the last byte needs all bytes for the probe: it fetches those that others received.
// The recording's object is then made of the upload's within the store (JoinPlan), and those are removed.

import Dispatch
import Storage

/// The bytes of resumable uploads as objects in a bucket. Thread-safe.
package final class S3Spool: UploadSpool {
  let client: S3Client
  let catalog: Catalog
  let scratch: MediaStore
  /// Maximum size of one object, in bytes.
  let objectBytes: Int64
  private let reserveRoom: @Sendable (Int64) throws(StorageError) -> BlockCache.Room?
  let fetchers = ThreadPool(label: "upload fetches", most: 12, mostOfCaller: 3)
  private let removals = DispatchQueue(label: "upload removals", qos: .utility)
  /// Removes objects, soon.
  private let removeSoon: @Sendable (@escaping @Sendable () -> Void) -> Void

  /// Keeps bytes in the bucket of `client`, and files in progress on `scratch`. `catalog` gets the rows that removal
  /// needs, also from transactions that end uploads. `reserve` reserves room for a number of bytes on the scratch disk,
  /// or throws `.diskFull`. `removeSoon` runs what removes objects; tests that have one thread run it at once.
  init(
    _ client: S3Client, catalog: Catalog, scratch: MediaStore, objectBytes: Int64 = 64 << 20,
    reserve: @escaping @Sendable (Int64) throws(StorageError) -> BlockCache.Room? = { _ throws(StorageError) in nil },
    removeSoon: (@Sendable (@escaping @Sendable () -> Void) -> Void)? = nil
  ) {
    self.removeSoon = removeSoon ?? { [removals] work in removals.async(execute: work) }
    (self.client, self.catalog, self.scratch, self.objectBytes) = (client, catalog, scratch, objectBytes)
    reserveRoom = reserve
    catalog.nameDeletedObjects()
  }

  /// Reserves room for files in progress; throws `.diskFull` if there is none.
  func reserve(_ bytes: Int64) throws(StorageError) -> BlockCache.Room? { try reserveRoom(bytes) }

  /// Does nothing: the row is enough.
  package func prepare(_ id: UploadID) {}

  /// Returns nil: other processes may receive the upload.
  package func openPart(of id: UploadID) -> UploadPart? { nil }

  /// Begins a file for the bytes from `offset` on. Returns nil if objects don't have those before.
  package func begin(_ segments: [UploadSegment], at offset: Int64) throws(StorageError) -> (any UploadBytes)? {
    guard let own = segments.last, own.start == offset,
      let objects = try catalog.objects(of: own.upload, upTo: offset)
    else { return nil }
    return ObjectBytes(of: own.upload, in: self, after: objects, part: try scratch.makeTemporaryPart())
  }

  /// Removes the objects of an upload that has ended, soon. If that fails, the collection does it.
  package func removePart(of id: UploadID) {
    removeSoon { [self] in
      for object in (try? catalog.unneededObjects(of: id)) ?? [] { try? client.delete(object.key) }
    }
  }

  /// Does the same.
  package func removeParts(of id: UploadID) { removePart(of: id) }

  /// Removes objects that others have taken the place of, soon. If that fails, the collection does it.
  func remove(_ replaced: [UploadObject], of id: UploadID) {
    removeSoon { [self] in
      guard let named = (try? catalog.objects(of: id)).map(Set.init) else { return }
      for object in replaced where !named.contains(object) { try? client.delete(object.key) }
    }
  }

  /// Returns a file with the bytes of an object. Throws `.storeUnreachable` if others arrive than were put.
  func fetch(_ object: UploadObject) throws(StorageError) -> UploadPart {
    let copy = try scratch.makeTemporaryPart()
    let info = try StorageError.translating { () throws(S3Error) in
      try client.get(object.key, into: copy.path, bytes: object.bytes)
    }
    let digests = try FileDigests(of: copy.path)
    guard digests.bytes == object.bytes, info.sha256 ?? digests.sha256 == digests.sha256 else {
      throw StorageError(S3Error.damaged)
    }
    return copy
  }

  /// Waits until the objects of uploads that have ended were removed, as far as possible.
  package func settle() { removals.sync {} }

  /// Removes the objects that are due and that no upload has. Blocks. One that can't be removed stays for the next time
  /// and doesn't keep others; then the first error is thrown at the end. If the store fails, throws at once.
  package func removeGarbage() throws(StorageError) { try removeGarbage(batch: 1000) }

  /// Removes garbage with `batch` rows at a time.
  func removeGarbage(batch: Int) throws(StorageError) {
    var failure: StorageError?
    // What can't be removed now comes first the next time, too.
    var stuck: Set<Catalog.UnneededUploadObject> = []
    var isLast = false
    while !isLast, stuck.count < 10 * batch {
      let limit = batch + stuck.count
      let due = try catalog.takeUploadObjects(limit: limit)
      // Unreadable rows stay and come again, so a batch with some of them must be the last.
      isLast = due.count < limit
      for (upload, objects) in Dictionary(grouping: due.filter({ !stuck.contains($0) }), by: \.upload) {
        let named = Set(try catalog.objects(of: upload).map(\.key))
        var settled: [Catalog.UnneededUploadObject] = []
        for object in objects {
          do throws(StorageError) {
            if !named.contains(object.key) {
              try StorageError.translating { () throws(S3Error) in try client.delete(object.key) }
            }
            settled.append(object)
          } catch {
            if error.isTransient, client.isFailing { throw error }
            failure = failure ?? error
            stuck.insert(object)
          }
        }
        // The end of the upload records those again that it has.
        try catalog.forget(settled)
      }
    }
    if let failure { throw failure }
  }
}

// @unchecked Sendable: its owner calls it from one queue at a time.

/// The bytes of an upload: those that are in objects, and the file of what this node receives.
final class ObjectBytes: UploadBytes, @unchecked Sendable {
  private let id: UploadID
  private let spool: S3Spool
  private let part: UploadPart
  /// The number of bytes before those of the file.
  private let base: Int64
  /// All that count.
  private var objects: [UploadObject]
  /// Those that the last ones of `objects` have taken the place of.
  private var replaced: [UploadObject] = []

  init(of id: UploadID, in spool: S3Spool, after objects: [UploadObject], part: UploadPart) {
    (self.id, self.spool, self.objects, self.part) = (id, spool, objects, part)
    base = objects.last?.end ?? 0
  }

  var byteCount: Int64 { base + part.byteCount }
  var isBroken: Bool { part.isBroken }
  private var storedCount: Int64 { objects.last?.end ?? 0 }

  func append(_ bytes: Span<UInt8>) throws(StorageError) { try part.append(bytes) }

  func truncate(to count: Int64) throws(StorageError) {
    precondition(count >= storedCount, "what is in an object stays")
    try part.truncate(to: count - base)
  }

  func sync(to count: Int64) throws(StorageError) -> [UploadObject] {
    guard count > storedCount else { return [] }
    // This is called again only once the row names what was returned the last time.
    if !replaced.isEmpty { spool.remove(replaced, of: id) }
    let kept = objects.dropLast(shortCount(before: count))
    var new: [UploadObject] = []
    for start in stride(from: kept.last?.end ?? 0, to: count, by: Int(spool.objectBytes)) {
      new.append(UploadObject(of: id, start: start, bytes: min(spool.objectBytes, count - start)))
    }
    try spool.catalog.announce(new)
    for object in new {
      try StorageError.translating { () throws(S3Error) in
        try spool.client.put(file: part.path, object.start - base..<object.end - base, as: object.key)
      }
    }
    replaced = Array(objects[kept.count...])
    objects = kept + new
    return new
  }

  /// How many of the last objects become a part of the next one, which ends at `count`: those that are too short for a
  /// part of the recording's object and that at least as many bytes follow. So each short one that stays is longer than
  /// all after it, which keeps them few, and no byte is put more often than an object can double.
  private func shortCount(before count: Int64) -> Int {
    let leastBytes = min(S3Client.leastPartBytes, spool.objectBytes)
    var start = storedCount
    let short = objects.reversed().prefix { object in
      guard object.start >= base, object.bytes < leastBytes, object.bytes <= count - start else {
        return false
      }
      start = object.start
      return true
    }
    return short.count
  }

  /// How many objects are fetched at a time.
  private static let fetchesAtOnce = 4

  /// Returns the file if it has all bytes; otherwise fetches those that it lacks into a new one.
  func join() throws(StorageError) -> UploadPart {
    guard base > 0 else {
      part.objects = objects
      return part
    }
    let others = objects.filter { $0.start < base }
    // The whole and, for a moment, copies of some objects.
    let copies = others.map(\.bytes).sorted().suffix(Self.fetchesAtOnce).reduce(0, +)
    let room = try spool.reserve(byteCount + copies)
    defer { withExtendedLifetime(room) {} }
    let whole = try spool.scratch.makeTemporaryPart()
    for first in stride(from: 0, to: others.count, by: Self.fetchesAtOnce) {
      let some = Array(others[first..<min(first + Self.fetchesAtOnce, others.count)])
      let files = try spool.fetchers.map(some) { [spool] (object) throws(StorageError) in try spool.fetch(object) }
      for (object, file) in zip(some, files) {
        try whole.append(contentsOf: file.path, bytes: object.bytes)
        room?.use(object.bytes)
      }
    }
    try whole.append(contentsOf: part.path, bytes: part.byteCount)
    whole.objects = objects
    return whole
  }
}
