import Storage

extension Scratch {
  /// The disk of a node for files in progress, which its cache shares: what the cache can evict counts as free, and
  /// room that is reserved for fetches doesn't. `freeBytes` is the disk's free space, for tests.
  init(_ disk: MediaStore, sharedWith cache: BlockCache, freeBytes: (@Sendable () -> Int64)? = nil) {
    self.init(
      disk,
      freeBytes: { disk throws(StorageError) in
        // Free space first: files that are evicted meanwhile then don't count twice.
        let free = if let freeBytes { freeBytes() } else { try disk.freeBytes() }
        let (evictable, promised) = cache.room
        cache.makeRoom()
        return max(0, free + evictable - promised)
      },
      checkReceiving: { disk throws(StorageError) in
        try disk.checkReceiving()
        try cache.checkWritable()
      })
  }
}
