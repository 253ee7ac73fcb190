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
      // Of several that wait for the same, the first has made room.
      let isMade = promise.isFulfilled || table.withLock { $0.hasPromised(promise) }
      let room = Room(promise, in: self)
      let lack = lackingRoom
      // Nothing is evicted in vain.
      guard lack <= evictableBytes else { return nil }
      evict(for: lack, atLeast: isMade ? 0 : leastBytes)
      // Some more if what went was open and gave no space, but not everything for files that are slow to give it.
      for _ in 0..<4 {
        let lack = lackingRoom
        guard lack > 0 else { return room }
        removeVictims(atLeast: lack)
      }
      return lackingRoom <= 0 ? room : nil
    }
    guard let room else { throw .diskFull }
    return room
  }

  /// How much less than what was promised the disk has free, in bytes; negative if it has more.
  private var lackingRoom: Int64 {
    // Read before the files are measured. The other way round, bytes written in between would count twice.
    let free = freeBytes()
    for object in table.withLock({ $0.promisedObjects }) { object.measure() }
    return room.promised - free
  }

  /// Calls `body`, which writes the bytes that `promise` covers. If the disk has no room for them, has as much evicted
  /// as they need and calls `body` once more: something else may have taken the space that the cache leaves free, or
  /// this user may have no more of it.
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

  /// Removes the least recently used objects that aren't held until the rest is within the limit, and the disk has the
  /// free space that the cache leaves.
  func evict() { evict(for: -freeBytes()) }

  /// Removes objects like the other, until the disk has `lack` bytes more, and at least `least` bytes of objects.
  private func evict(for lack: Int64, atLeast least: Int64 = 0) {
    let wanted = max(min(lack, 1 << 60) + spareBytes, least)
    // Some more than is wanted, so that a full cache doesn't evict for each object that comes.
    if wanted > 0 || cost > limitBytes { removeVictims(atLeast: wanted, surplus: { $0 / 32 }) }
  }

  /// Removes the least recently used objects that aren't held until the rest is within the limit and `wanted` bytes of
  /// the disk are free, and then more as long as `surplus`, of the cost of the rest, isn't exceeded. Counts what it
  /// removes: files that others have open, and some file systems, give their space back later. Objects whose files
  /// another program has removed give none. Ends if a file can't be removed, because the others can't be either.
  private func removeVictims(atLeast wanted: Int64, surplus: (Int64) -> Int64 = { _ in 0 }) {
    var found: Int64 = 0
    while true {
      let cost = cost
      let lack = max(wanted - found, cost - limitBytes)
      let most = lack > 0 ? .max : lack + surplus(cost)
      let task = SharedTask()
      guard let victim = table.withLock({ $0.takeVictim(costingAtMost: most, for: task) }) else { return }
      let file = folder.file(of: victim.key)
      drop(victim.key, leavesHeld: true)
      table.withLock { $0.busy[victim.key] = nil }
      task.finish(.done)
      guard let file else { continue }
      guard !folder.has(file) else { return }
      found += victim.cost
    }
  }

  /// Drops the objects that aren't held and whose files another program has removed, because evicting them would free
  /// nothing. Looks at each.
  func forgetRemoved() {
    for key in table.withLock({ $0.unheldKeys }) where folder.file(of: key) == nil {
      occupying(key) {
        let isHeld = table.withLock { $0.entries[key]?.holds != 0 }
        if !isHeld, folder.file(of: key) == nil { drop(key, leavesHeld: true) }
      }
    }
  }
}
