/// The disk for files in progress: work folders, uploads being received. Thread-safe.
///
/// It is the same folder as the recordings', so that finished files are renamed and not copied. If those are in a
/// bucket, this is a local disk that may be lost: an attempt then begins again, and an upload continues after its last
/// acknowledged bytes, which are in the bucket.
///
/// Every throwing member blocks on the disk, so call it on a worker queue, never on an event loop.
package struct Scratch: Sendable {
  /// The folders.
  package let disk: MediaStore
  private let free: @Sendable (MediaStore) throws(StorageError) -> Int64
  private let check: @Sendable (MediaStore) throws(StorageError) -> Void
  private let make: @Sendable (MediaStore, JobID) throws(StorageError) -> String

  /// Describes a disk that nothing shares, unless the other arguments replace what the members do.
  package init(
    _ disk: MediaStore,
    freeBytes: @escaping @Sendable (MediaStore) throws(StorageError) -> Int64 = { disk throws(StorageError) in
      try disk.freeBytes()
    },
    checkReceiving: @escaping @Sendable (MediaStore) throws(StorageError) -> Void = { disk throws(StorageError) in
      try disk.checkReceiving()
    },
    makeWorkFolder: @escaping @Sendable (MediaStore, JobID) throws(StorageError) -> String = {
      disk, id throws(StorageError) in try disk.makeWorkFolder(of: id)
    }
  ) {
    (self.disk, free, check, make) = (disk, freeBytes, checkReceiving, makeWorkFolder)
  }

  /// Creates a job's work folder unless it exists. Returns its path.
  @discardableResult
  package func makeWorkFolder(of id: JobID) throws(StorageError) -> String { try make(disk, id) }

  /// Creates and removes a file to verify that uploads and jobs can write. Throws the error if they can't.
  package func checkReceiving() throws(StorageError) { try check(disk) }

  /// Returns the number of bytes that can still be written. If a cache shares the disk, what it can evict counts as
  /// free, and some objects are evicted if they leave too little; so ask before and while much is written.
  package func freeBytes() throws(StorageError) -> Int64 { try free(disk) }
}
