import Dispatch
import Glibc
import Storage
import Synchronization

/// A cache of a bucket's objects, in blocks. Thread-safe.
///
/// Each block is fetched once, however many threads want it, and each object's files belong to one thread while they
/// are created or removed. Every member except `fileAtHand` blocks, on the disk and maybe on the store.
package final class BlockCache: Sendable {
  /// Keeps an object's files in the cache.
  final class Hold: Sendable {
    let cache: BlockCache
    let object: CachedObject

    init(_ object: CachedObject, in cache: BlockCache) { (self.object, self.cache) = (object, cache) }

    deinit { cache.release(object) }
  }

  /// Maximum size of all objects together, in bytes; held ones may exceed it.
  package let limitBytes: Int64
  /// Free space that the cache leaves on its disk, in bytes; held objects may exceed it.
  let spareBytes: Int64
  let freeBytes: @Sendable () -> Int64
  let folder: CacheFolder
  let client: S3Client
  private let lock: BlockFile
  let table = Mutex(CacheTable())
  /// Evicts and reserves room, so that two threads neither evict for the same reason nor have the same room.
  let evictions = DispatchQueue(label: "cache evictions")
  /// Apart from evictions, which others wait for, because a removal may wait for the store's answer about an object.
  let removals = DispatchQueue(label: "cache removals")
  /// Whether an eviction has been asked for that hasn't begun.
  let isEvicting = Atomic(false)
  private let fetchers = ThreadPool(label: "cache fetches", most: 24, mostOfCaller: 3)
  let expecting: @Sendable (ObjectKey) throws(StorageError) -> ExpectedObject?

  /// Opens the cache in `directory`, which is created if it is missing; keeps what earlier processes left there. Throws
  /// `.inUse` if another process has it for longer than `patience`: if a service is killed while starting a child, the
  /// child has the lock until it has executed the other program. Looks at each file, but reads none. `expecting`
  /// returns what an object must be according to rows; nil if only the store says it. `freeBytes` is the disk's free
  /// space, for tests.
  package init(
    directory: String, limitBytes: Int64, spareBytes: Int64 = 0, client: S3Client, patience: Duration = .seconds(2),
    freeBytes: (@Sendable () -> Int64)? = nil,
    expecting: @escaping @Sendable (ObjectKey) throws(StorageError) -> ExpectedObject? = { _ throws(StorageError) in nil
    }
  ) throws(StorageError) {
    (self.limitBytes, self.client) = (limitBytes, client)
    // So that sums don't overflow.
    (self.spareBytes, self.expecting) = (min(spareBytes, 1 << 60), expecting)
    self.freeBytes = freeBytes ?? { (try? FileSystem.freeBytes(at: directory)) ?? .max }
    folder = try CacheFolder(directory)
    lock = try BlockFile(path: directory + "/lock", flags: O_RDWR | O_CREAT)
    let deadline = client.clock.now + patience
    while !lock.lock() {
      guard client.clock.now < deadline else { throw .inUse(path: directory) }
      client.clock.pause(0.01)
    }
    try scan()
    evict()
  }

  /// How much of the disk the cached files take, in bytes.
  package var cost: Int64 { table.withLock { $0.cost } }

  /// Returns the path of a new file on the cache's disk.
  func incomingPath() -> String { folder.incomingPath() }

  /// Waits until what was to go soon, or was released and had to be evicted, is gone. For tests.
  func settle() {
    removals.sync {}
    evictions.sync {}
  }

  // MARK: Reading

  /// Returns the length of an object that this process has had the whole of and still has; nil otherwise.
  package func knownLength(of key: ObjectKey) -> Int64? {
    let object = table.withLock { $0.entries[key]?.object }
    guard let object, object.isPublished, object.isThere else { return nil }
    return object.version.bytes
  }

  /// Whether the cache has a part of an object.
  func has(_ key: ObjectKey) -> Bool { table.withLock { $0.entries[key] != nil || $0.busy[key] != nil } }

  /// Returns the bytes of an object in each range, fewer if it ends before; nil if there is none. Fetches only the
  /// blocks that they are in, as far as the cache lacks them.
  package func read(_ key: ObjectKey, _ ranges: [Range<Int64>]) throws(StorageError) -> [[UInt8]]? {
    try current(key) { (object) throws(StorageError) -> [[UInt8]] in
      let ranges = ranges.map { $0.clamped(to: 0..<object.version.bytes) }
      let fetched = try fill(object, ranges)
      client.figures.addRead(hit: max(0, ranges.reduce(0) { $0 + Int64($1.count) } - fetched), miss: fetched)
      return try object.read(ranges)
    }
  }

  /// Returns bytes of an object, fewer if it ends before; nil if there is none.
  func read(_ key: ObjectKey, _ range: Range<Int64>) throws(StorageError) -> [UInt8]? { try read(key, [range])?[0] }

  /// Whether the cache has all blocks that ranges of an object are in, so that reading them needs no store. Waits for
  /// the disk, to compare with their digests those that an earlier process has left, but never for the store.
  package func isAtHand(_ key: ObjectKey, _ ranges: [Range<Int64>]) -> Bool {
    guard let hold = try? acquire(key, asking: false) else { return false }
    defer { withExtendedLifetime(hold) {} }
    let object = hold.object
    defer { account(for: object) }
    return object.isAtHand(ranges.map { $0.clamped(to: 0..<object.version.bytes) })
  }

  /// Gets the blocks of ranges that are missing. Returns how many bytes were fetched.
  private func fill(_ object: CachedObject, _ ranges: [Range<Int64>]) throws(StorageError) -> Int64 {
    let runs = object.missingRuns(of: ranges)
    guard !runs.isEmpty else { return 0 }
    defer { account(for: object) }
    let fetched = try fetchers.map(runs) { [self] (run) throws(StorageError) in
      try makingRoom(for: .blocks(run, of: object)) { () throws(StorageError) in try object.fill(run, from: client) }
    }
    return fetched.reduce(0, +)
  }

  /// Calls `body` with an object, which is held meanwhile; returns nil if there is none. If the store has another
  /// version than the cache has begun, or the disk can't read what it has, forgets that and calls it once more.
  private func current<R>(
    _ key: ObjectKey, _ body: (CachedObject) throws(StorageError) -> R
  ) throws(StorageError) -> R? {
    var failure = StorageError.changedMeanwhile
    for _ in 0..<2 {
      guard let hold = try acquire(key) else { return nil }
      defer { withExtendedLifetime(hold) {} }
      do throws(StorageError) { return try body(hold.object) } catch {
        guard error.meansLoss else { throw error }
        forget(hold.object)
        failure = error
      }
    }
    throw failure == .changedMeanwhile ? .storeUnreachable(detail: "\(S3Error.changed)") : failure
  }

  /// Returns a file with the whole object, which stays as long as the result exists; nil if there is no object. Fetches
  /// what the cache lacks, and compares the whole with its SHA-256. Throws `.damagedObject` if that is another one, the
  /// same each time, and `.storeUnreachable` if each time other bytes arrive, because then the connection damages them.
  package func file(_ key: ObjectKey) throws(StorageError) -> LocalFile? {
    try current(key) { (object) throws(StorageError) -> LocalFile in
      defer { account(for: object) }
      let room = object.missingBytes == 0 ? nil : try reserve(.rest(of: object))
      defer { withExtendedLifetime(room) {} }
      // Twice, because the damage may have been on this machine's disk, or on the way.
      var wrongs = 0
      while wrongs < 2 {
        let fetched = try fill(object, [0..<object.version.bytes])
        client.figures.addRead(hit: max(0, object.version.bytes - fetched), miss: fetched)
        switch try object.check() {
        case .whole:
          try publish(object)
          return LocalFile(path: object.path, holding: held(object))
        case .wrong: wrongs += 1
        // Another thread has just found it wrong, so this ends as soon as that does.
        case .incomplete: break
        }
        if object.isDamaged { throw .damagedObject(key: key.description) }
      }
      throw .storeUnreachable(detail: "\(key) arrives damaged, with other bytes each time")
    }
  }

  /// Gives a whole object its path.
  private func publish(_ object: CachedObject) throws(StorageError) {
    guard !object.isPublished else { return }
    let task = occupy(object.key)
    defer {
      table.withLock { $0.busy[object.key] = nil }
      task.finish(.done)
    }
    guard table.withLock({ $0.has(object) }) else { throw .changedMeanwhile }
    try object.publish()
  }

  /// Holds an object that is held already once more.
  private func held(_ object: CachedObject) -> Hold {
    table.withLock { if $0.has(object) { $0.hold(object.key) } }
    return Hold(object, in: self)
  }

  /// Returns the same if this process has had the whole object before and still has it. Doesn't block.
  package func fileAtHand(_ key: ObjectKey) -> LocalFile? {
    let object = table.withLock { table -> CachedObject? in
      guard table.busy[key] == nil, let object = table.entries[key]?.object else { return nil }
      table.hold(key)
      return object
    }
    guard let object else { return nil }
    let hold = Hold(object, in: self)
    return object.isPublished && object.isThere ? LocalFile(path: object.path, holding: hold) : nil
  }

  /// The path of an object's file, which exists only if all of the object is there.
  package func path(of key: ObjectKey) -> String { folder.path(of: key) }

  // MARK: Changing

  /// Makes a file on the cache's disk the cache's copy of an object. `digests` are those of its blocks. Afterward the
  /// file is gone; if it couldn't be moved, the object isn't cached.
  func insert(_ source: String, as key: ObjectKey, _ version: CachedVersion, digests: [UInt8]) {
    defer { evictIfFull() }
    let task = occupy(key)
    defer {
      table.withLock { $0.busy[key] = nil }
      task.finish(.done)
    }
    // Otherwise those that hold it would keep a file that is no longer counted.
    if let object = table.withLock({ $0.entries[key]?.object }), object.isPublished, object.isThere {
      try? FileSystem.remove(source)
      return
    }
    drop(key, leavesHeld: true)
    var isMoved = false
    do throws(StorageError) {
      try remaking { () throws(StorageError) in try CachedObject.move(source, to: path(of: key)) }
      isMoved = true
      let index = try remaking { () throws(StorageError) in
        try BlockIndex(creating: folder.indexPath(of: key), version)
      }
      try index.write(digests, from: 0)
      try index.seal()
    } catch {
      for path in [isMoved ? path(of: key) : source, folder.indexPath(of: key)] { try? FileSystem.remove(path) }
      return
    }
    let object = CachedObject(whole: key, path: path(of: key), indexPath: folder.indexPath(of: key), version)
    let now = client.clock.time
    table.withLock { $0.insert(key, object, cost: object.cost, touchedAt: now) }
  }

  /// Throws if the cache can't write files. Creates folders that another program has removed.
  package func checkWritable() throws(StorageError) {
    try makeFolders()
    try folder.check()
  }

  private func makeFolders() throws(StorageError) {
    if try folder.make() { removals.async { [self] in forgetRemoved() } }
  }

  /// Runs `body`, once more if a folder was missing, because another program has removed it.
  func remaking<Result>(_ body: () throws(StorageError) -> Result) throws(StorageError) -> Result {
    do throws(StorageError) { return try body() } catch {
      guard case .io(_, _, ENOENT) = error else { throw error }
      try makeFolders()
      return try body()
    }
  }

  // MARK: Accounting

  private func release(_ object: CachedObject) {
    let isFull = table.withLock { table in
      table.release(object)
      return table.cost > limitBytes
    }
    // This may be an event loop.
    if isFull { makeRoom() }
  }

  /// Counts what an object has got or lost.
  private func account(for object: CachedObject) {
    object.measure()
    table.withLock { $0.update(object) }
    evictIfFull()
  }

  func touch(_ key: ObjectKey) {
    let now = client.clock.time
    if table.withLock({ $0.touch(key, at: now) }) { _ = unsafe utimensat(AT_FDCWD, folder.indexPath(of: key), nil, 0) }
  }

  /// Lists the objects that earlier processes cached, and removes all other files.
  private func scan() throws(StorageError) {
    let found = try folder.list()
    table.withLock { table in
      for (key, cost) in found { table.insert(key, nil, cost: cost) }
    }
  }
}

extension StorageError {
  /// Whether what the cache has of an object is lost: it was replaced or removed, or the disk can't read it.
  var meansLoss: Bool {
    if case .io(_, _, let code) = self { return code == EIO || code == ENOENT }
    return self == .changedMeanwhile
  }
}
