// A store keeps files by key, in a folder or in a bucket. It knows no rows: what a key means, and what is announced
// before an object is put or removed, is up to the layers above.
//
//   recordings/<recording>/<name>   a recording's files
//   uploads/<name>                  bytes of unfinished uploads
//
// A key is never used for two contents, and an object appears as a whole or not at all.

/// What a store says about an object that is there as a whole.
package struct FoundObject: Sendable, Equatable {
  /// The length in bytes.
  package let bytes: Int64
  /// The SHA-256 with which it was put, if the store knows that without reading the object.
  package let sha256: String?

  /// Describes an object.
  package init(bytes: Int64, sha256: String?) { (self.bytes, self.sha256) = (bytes, sha256) }
}

/// The bytes of an object, or some of them.
package struct ObjectPiece: Sendable, Equatable {
  /// The key of the object.
  package let key: String
  /// Which of its bytes; nil for all.
  package let range: Range<Int64>?

  /// Names bytes of an object.
  package init(_ key: String, _ range: Range<Int64>? = nil) { (self.key, self.range) = (key, range) }
}

/// Files under keys, in a folder (`FolderStore`) or in a bucket (`BucketStore`). Thread-safe; every call blocks.
package protocol ObjectStore: Sendable {
  /// What messages call the place: a path, or `s3://BUCKET/PREFIX`.
  var name: String { get }

  /// Returns the path of the file that is the object itself, whether or not it exists; nil if objects aren't files.
  func path(of key: String) -> String?

  /// Looks for an object; nil if there is none. Costs a system call, or a request.
  func look(_ key: String) throws(StorageError) -> FoundObject?

  /// Returns the first `limit` bytes of an object; nil if there is none.
  func contents(of key: String, limit: Int) throws(StorageError) -> [UInt8]?

  /// Returns the SHA-256 of an object as it is in the store, as 64 lower-case hexadecimal digits. Reads all of it.
  ///
  /// With `inPieces`, believes no cache and keeps nothing in one, and calls `goesOn`, which may wait, with the length
  /// of each piece after it was read; returns nil once that returns false. Throws `.io` with `ENOENT` if there is no
  /// object.
  func sha256(
    of key: String, inPieces: Bool, _ goesOn: (Int) throws(StorageError) -> Bool
  ) throws(StorageError) -> String?

  /// Writes an object to the new file `path`, and returns its length and SHA-256; nil if there is no object. Throws
  /// `.damagedObject` if the content isn't what the store was given.
  func copy(_ key: String, to path: String) throws(StorageError) -> FoundObject?

  /// Makes a durable object of what another store has, in this order, unless `isExpected` returns false. Returns what
  /// the other has; nil if it lacks a part. One of both stores is a folder.
  func take(
    _ pieces: [ObjectPiece], of other: any ObjectStore, as key: String, if isExpected: (FoundObject) -> Bool
  ) throws(StorageError) -> FoundObject?

  /// Makes a durable object of some bytes. Replaces one with the same key.
  func put(_ bytes: [UInt8], as key: String) throws(StorageError)

  /// Removes an object. A missing one isn't an error.
  func delete(_ key: String) throws(StorageError)

  /// Returns up to `limit` keys that begin with `prefix`, which has a slash, in no particular order.
  func keys(_ prefix: String, limit: Int) throws(StorageError) -> [String]

  /// Makes the names of all that was taken durable.
  func sync() throws(StorageError)

  /// Returns the ID by which a catalog knows the store; nil if it has none.
  func mediaID() throws(StorageError) -> String?

  /// Returns the store's ID; gives it this one, if any, or a new one, if it has none.
  func makeMediaID(_ id: String?) throws(StorageError) -> String
}

extension ObjectStore {
  /// Whether unfinished uploads are in objects that rows name, and each object is announced before it is put.
  package var isBucket: Bool { path(of: "") == nil }

  /// Whether any recording has objects.
  package func hasRecordings() throws(StorageError) -> Bool { try !keys("recordings/", limit: 1).isEmpty }
}
