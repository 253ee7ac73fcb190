import Glibc

// A store keeps files by key, in a folder or in a bucket. It doesn't depend on rows: the layers above (Blobs,
// Descriptions, Move) decide what a key means and what is announced before an object is put or removed.
//
//   recordings/<recording>/<name>   a recording's files
//   uploads/<name>                  bytes of unfinished uploads
//
// A key is never used for two contents, and an object appears as a whole or not at all.

/// A complete object, as a store describes it.
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

/// A file or bytes that are to become an object.
package struct NewObject: Sendable {
  /// Where the content is.
  package enum Content: Sendable {
    /// In a file on the scratch disk, which a store may move or remove.
    case file(String)
    /// In memory, for short content such as a description.
    case bytes([UInt8])
  }

  /// The object's key.
  package let key: String
  /// Its content.
  package let content: Content
  /// The SHA-256 of the content, if it is known already.
  package let sha256: String?
  /// Waits until the file is on disk. If nil, the store opens the file and syncs it. The writer of a file passes its
  /// own, because only its descriptor reports every write error.
  package var sync: (@Sendable () throws(StorageError) -> Void)?
  /// Whether to return the SHA-256 if it isn't known: in a folder, the file is read for it.
  package var wantsSHA256 = false
  /// Whether the file stays where it is, too.
  package var keepsFile = false
  /// Whether the object is needed. If not, it may be missing, its put may fail, and a power failure may lose it.
  package var isNeeded = true
  /// The objects that have the same bytes, in order, if any: a bucket then copies them.
  package var parts: [UploadObject] = []

  /// Describes an object; see the members.
  package init(_ content: Content, as key: String, sha256: String? = nil) {
    (self.content, self.key, self.sha256) = (content, key, sha256)
  }
}

/// Files under keys, in a folder (`FolderStore`) or in a bucket (`BucketStore`), which can have a cache on a local
/// disk, because workers, libsndfile and ffmpeg read files. Thread-safe.
///
/// Every member except `fileAtHand` may block, so call it on a worker queue, never on an event loop.
package protocol ObjectStore: Sendable {
  /// What messages call the place: a path, or `s3://BUCKET/PREFIX`.
  var name: String { get }

  /// Returns the path of the file that is the object itself, whether or not it exists; nil if objects aren't files.
  func path(of key: String) -> String?

  // MARK: Putting

  /// Makes durable objects of one recording, and returns what each is; nil for one that isn't needed and wasn't put.
  /// Replaces one with the same key.
  ///
  /// With `begins`, they may be the recording's first. Otherwise a folder throws if nothing is left of the recording,
  /// so that a deleted one isn't begun again.
  ///
  /// After an error, a file may be where it was or gone. In a bucket, some of the objects may be there.
  func put(_ objects: [NewObject], begins: Bool) throws(StorageError) -> [FoundObject?]

  /// Makes a durable object of what another store has, in this order, unless `isExpected` returns false. Returns what
  /// the other has; nil if it lacks a part. One of both stores is a folder.
  func take(
    _ pieces: [ObjectPiece], of other: any ObjectStore, as key: String, if isExpected: (FoundObject) -> Bool
  ) throws(StorageError) -> FoundObject?

  /// Makes the names of all that was taken durable.
  func sync() throws(StorageError)

  // MARK: Reading

  /// Looks for an object; nil if there is none. Costs a system call, or a request unless a cache has the object.
  func look(_ key: String) throws(StorageError) -> FoundObject?

  /// Returns the bytes of an object in each range, fewer if it ends before; nil if there is no object. No range is
  /// empty. For small parts of a long object, because the bytes of a bucket's are compared with their SHA-256 only once
  /// all are here. Fetches the blocks of 64 KiB that a cache lacks.
  func read(_ key: ObjectKey, _ ranges: [Range<Int64>]) throws(StorageError) -> [[UInt8]]?

  /// Whether this machine has all bytes of an object in these ranges, so that `read` waits for no other, until they are
  /// evicted from a cache. May read them. Always true in a folder, even if there is no object.
  func isAtHand(_ key: ObjectKey, _ ranges: [Range<Int64>]) -> Bool

  /// Returns a local file with the whole object. If there is no object, no file has its path.
  ///
  /// The file doesn't change, and it must not be changed. A recording's map of its sound is beside its audio.
  ///
  /// Costs the making of a string in a folder. For a bucket, downloads what a cache lacks, with the map, and keeps both
  /// there while the result is held, so ask only for files that will be read.
  func localFile(_ key: ObjectKey) throws(StorageError) -> LocalFile

  /// Returns the local file with the whole object, if it is known without waiting: always in a folder, and only if a
  /// cache has all of it otherwise.
  func fileAtHand(_ key: ObjectKey) -> LocalFile?

  /// Removes the copy of an object that `localFile` has made, because it seems damaged, so that the next call makes
  /// another one. Returns false if local files are the objects themselves.
  func discardCopy(of key: ObjectKey) -> Bool

  /// Returns the first `limit` bytes of an object, past any cache; nil if there is none.
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

  /// Returns up to `limit` keys that begin with `prefix`, which has a slash, in no particular order.
  func keys(_ prefix: String, limit: Int) throws(StorageError) -> [String]

  // MARK: Removing

  /// Removes an object. A missing one isn't an error.
  func delete(_ key: String) throws(StorageError)

  /// Discards what calls that were begun a day ago have left behind, as far as rows name it.
  func discardUnfinished() throws(StorageError)

  // MARK: The store

  /// Whether the last call has failed because the store doesn't work, so that the next one will fail as well.
  var isFailing: Bool { get }

  /// Throws if objects can't be read or put now, so that a job would fail for no fault of its own. Costs nothing unless
  /// something has failed; then it blocks for at most a second.
  func checkReachable() throws(StorageError)

  /// Returns the ID by which a catalog knows the store; nil if it has none.
  func mediaID() throws(StorageError) -> String?

  /// Returns the store's ID; gives it this one, if any, or a new one, if it has none.
  func makeMediaID(_ id: String?) throws(StorageError) -> String
}

/// The result of looking for one object.
package enum FileLook: Sendable, Equatable {
  /// There is no object with that key.
  case absent
  /// The object exists and has this length.
  case present(bytes: Int64)
  /// The disk or the store doesn't respond.
  case unknown
}

extension ObjectStore {
  /// Whether unfinished uploads are in objects that rows name, and each object is announced before it is put.
  package var isBucket: Bool { path(of: "") == nil }

  /// Whether any recording has objects.
  package func hasRecordings() throws(StorageError) -> Bool { try !keys("recordings/", limit: 1).isEmpty }

  /// Looks for an object like `look`.
  package func look(at key: ObjectKey) -> FileLook {
    do { return try look("\(key)").map { .present(bytes: $0.bytes) } ?? .absent } catch { return .unknown }
  }

  /// Returns bytes of an object in a range, fewer if it ends before; nil if there is no object.
  package func read(_ key: ObjectKey, _ range: Range<Int64>) throws(StorageError) -> [UInt8]? {
    try read(key, [range])?[0]
  }

  /// Makes a durable object of some bytes.
  package func put(_ bytes: [UInt8], as key: String, begins: Bool = false) throws(StorageError) {
    _ = try put([NewObject(.bytes(bytes), as: key)], begins: begins)
  }
}
