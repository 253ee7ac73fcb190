import Storage

/// The disk of a node for files in progress, which its cache shares: what the cache can evict counts as free, and room
/// that is reserved for fetches doesn't.
package struct S3Scratch: Scratch {
  /// The folders.
  package let disk: MediaStore
  private let cache: BlockCache
  private let freeBytesOfDisk: @Sendable () throws(StorageError) -> Int64

  /// `freeBytes` is the disk's free space for tests.
  init(_ disk: MediaStore, sharedWith cache: BlockCache, freeBytes: (@Sendable () -> Int64)? = nil) {
    (self.disk, self.cache) = (disk, cache)
    freeBytesOfDisk = { () throws(StorageError) in
      if let freeBytes { return freeBytes() }
      return try disk.freeBytes()
    }
  }

  /// Returns the number of bytes that can still be written, once the cache has given room. Has some objects evicted if
  /// they leave too little, so ask before and while much is written.
  package func freeBytes() throws(StorageError) -> Int64 {
    // First, so that what is evicted meanwhile doesn't count twice.
    let free = try freeBytesOfDisk()
    let (evictable, promised) = cache.room
    cache.makeRoom()
    return max(0, free + evictable - promised)
  }

  /// Creates and removes files to verify that uploads, jobs and the cache can write. Throws the error if they can't.
  package func checkReceiving() throws(StorageError) {
    try disk.checkReceiving()
    try cache.checkWritable()
  }

  /// Creates a job's work folder unless it exists. Returns its path.
  @discardableResult
  package func makeWorkFolder(of id: JobID) throws(StorageError) -> String { try disk.makeWorkFolder(of: id) }
}
