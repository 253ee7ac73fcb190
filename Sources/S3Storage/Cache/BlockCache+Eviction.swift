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

    fileprivate init(_ promise: CacheTable.Promise, in cache: BlockCache) {
      self.cache = cache
      cache.table.withLock { $0.add(promise, ObjectIdentifier(self)) }
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

  /// Reserves room on the disk for bytes that are about to be written into another file; see `reserve(_:leastBytes:)`.
  func reserve(_ bytes: Int64) throws(StorageError) -> Room { try reserve(.bytes(bytes)) }

  /// Reserves room on the disk, and evicts objects for it: at least `leastBytes`, whatever free space the disk claims.
  /// Throws `.diskFull` if there isn't that much besides what was promised to others, even without what can be evicted.
  /// Blocks.
  func reserve(_ promise: CacheTable.Promise, leastBytes: Int64 = 0) throws(StorageError) -> Room {
    let room = evictions.sync { () -> Room? in
      let room = Room(promise, in: self)
      let (evictable, promised) = self.room
      // Nothing is evicted in vain.
      guard promised <= freeBytes() || promised - evictable <= freeBytes() else { return nil }
      evict(for: promised, atLeast: leastBytes)
      // Some more if what went was open and gave no space, but not everything for files that are slow to give it.
      for _ in 0..<4 where self.room.promised > freeBytes() { evict(for: self.room.promised) }
      return self.room.promised <= freeBytes() ? room : nil
    }
    guard let room else { throw .diskFull }
    return room
  }

  /// Calls `body`, which writes what `promise` is about. If the disk has no room for that, has as much evicted as it
  /// needs and calls `body` once more: something else may have taken the space that the cache leaves free, or this user
  /// may have no more of it.
  func makingRoom<Result>(
    for promise: CacheTable.Promise, _ body: () throws(StorageError) -> Result
  ) throws(StorageError) -> Result {
    do throws(StorageError) { return try body() } catch {
      guard error == .diskFull else { throw error }
      let room = try reserve(promise, leastBytes: promise.bytes)
      defer { withExtendedLifetime(room) {} }
      return try body()
    }
  }

  /// Evicts what must go, and waits for that, so that the cache doesn't grow faster than it gives up.
  func evictIfFull() {
    if cost > limitBytes || freeBytes() < spareBytes { evictions.sync { evict() } }
  }

  /// Removes the least recently used objects that aren't held until the rest is within the limit, and the disk has
  /// enough free space for `bytes` more; at least objects of `least` bytes. Counts what it removes: files that others
  /// have open, and some file systems, give their space back later. Objects whose files another program has removed, or
  /// whose files can't be removed, give none.
  func evict(for bytes: Int64 = 0, atLeast least: Int64 = 0) {
    let wanted = max(min(bytes, 1 << 60) + spareBytes - freeBytes(), least)
    var found: Int64 = 0
    var isBegun = false
    while true {
      let cost = cost
      let lack = max(wanted - found, cost - limitBytes)
      guard lack > 0 || isBegun else { return }
      isBegun = true
      // Some more than is wanted, so that a full cache doesn't evict for each object that comes.
      let most = lack > 0 ? .max : lack + cost / 32
      let errand = Errand()
      guard let victim = table.withLock({ $0.takeVictim(costingAtMost: most, for: errand) }) else { return }
      let wasThere = folder.has(victim.key)
      drop(victim.key, leavesHeld: true)
      table.withLock { $0.busy[victim.key] = nil }
      errand.finish(.done)
      if wasThere, !folder.has(victim.key) { found += victim.cost }
    }
  }

  /// Drops the objects that aren't held and whose files another program has removed, because evicting them would free
  /// nothing. Looks at each.
  func forgetRemoved() {
    for key in table.withLock({ $0.unheldKeys }) where !folder.has(key) {
      occupying(key) {
        if table.withLock({ $0.entries[key]?.holds == 0 }), !folder.has(key) { drop(key, leavesHeld: true) }
      }
    }
  }
}
