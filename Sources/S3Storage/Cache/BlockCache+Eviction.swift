// The least recently used objects go first, once all together are larger than the limit or the disk has too little free
// space for uploads and jobs. What is held stays. An index is touched when its object is used, at most once a minute,
// so that a restart keeps the order.

import Dispatch
import Storage
import Synchronization

extension BlockCache {
  /// Room on the cache's disk that is reserved for a fetch as long as this exists.
  final class Room: Sendable {
    private let cache: BlockCache

    fileprivate init(_ bytes: Int64, of object: CachedObject?, in cache: BlockCache) {
      self.cache = cache
      cache.table.withLock { $0.promise(ObjectIdentifier(self), bytes, of: object) }
    }

    deinit { cache.table.withLock { $0.end(ObjectIdentifier(self)) } }

    /// Takes in that bytes have been written into a file that isn't an object's.
    func use(_ bytes: Int64) { cache.table.withLock { $0.use(ObjectIdentifier(self), bytes) } }
  }

  /// How much of the disk evicting would free now, in bytes.
  package var evictableBytes: Int64 { table.withLock { $0.evictableBytes } }

  /// How much of the disk evicting would free now, and how much of it is reserved for fetches and not used yet, in
  /// bytes.
  var room: (evictable: Int64, promised: Int64) { table.withLock { ($0.evictableBytes, $0.promisedBytes) } }

  /// Has objects evicted, soon, until the disk has the free space that the cache leaves, if it can. Doesn't block.
  package func makeRoom() {
    guard !isEvicting.exchange(true, ordering: .acquiringAndReleasing) else { return }
    evictions.async { [self] in
      // Cleared first, so that whatever is released from now on asks for another eviction.
      _ = isEvicting.exchange(false, ordering: .acquiringAndReleasing)
      evict()
    }
  }

  /// Reserves room on the disk for bytes that are about to be written, or for all that an object lacks, and evicts
  /// others for it. Throws `.diskFull` if there isn't that much besides what was promised to others, even without what
  /// can be evicted. Blocks.
  func reserve(_ bytes: Int64, of object: CachedObject? = nil) throws(StorageError) -> Room {
    let room = evictions.sync { () -> Room? in
      let room = Room(bytes, of: object, in: self)
      let (evictable, promised) = self.room
      // Nothing is evicted in vain.
      guard promised <= freeBytes() || promised - evictable <= freeBytes() else { return nil }
      evict(for: promised)
      return promised <= freeBytes() ? room : nil
    }
    guard let room else { throw .diskFull }
    return room
  }

  /// Evicts what must go, and waits for that, so that the cache doesn't grow faster than it gives up.
  func evictIfFull() {
    if cost > limitBytes || freeBytes() < spareBytes { evictions.sync { evict() } }
  }

  /// Removes the least recently used objects that aren't held until the rest is within the limit, and the disk has
  /// enough free space for `bytes` more. Counts what it removes: files that others have open, and some file systems,
  /// give their space back later. Those that another program has removed give none.
  func evict(for bytes: Int64 = 0) {
    let cost = cost
    let wanted = max(min(bytes, 1 << 60) + spareBytes - freeBytes(), cost - limitBytes)
    guard wanted > 0 else { return }
    // Some more than is wanted, so that a full cache doesn't evict for each object that comes.
    let most = wanted + cost / 32
    var found: Int64 = 0
    while true {
      let errand = Errand()
      let left = found < wanted ? .max : most - found
      guard let victim = table.withLock({ $0.takeVictim(costingAtMost: left, for: errand) }) else { return }
      let isThere = folder.has(victim.key)
      drop(victim.key, leavesHeld: true)
      table.withLock { $0.busy[victim.key] = nil }
      errand.finish(.done)
      if isThere { found += victim.cost }
    }
  }
}
