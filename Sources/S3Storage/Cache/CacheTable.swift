import Storage

/// What a cache knows about its objects, for use under a lock: every member is O(1) unless it says otherwise.
struct CacheTable: Sendable {
  struct Entry: Sendable {
    fileprivate(set) var cost: Int64
    fileprivate(set) var holds = 0
    fileprivate var touchedAt: Timestamp
    /// Nil until this process has read the index.
    let object: CachedObject?
  }

  /// Room on the disk that a fetch gets.
  struct Promise: Sendable {
    /// Nil for a file that isn't an object's.
    fileprivate let object: CachedObject?
    /// The blocks that are fetched; nil for all.
    fileprivate let run: Range<Int>?
    fileprivate(set) var bytes: Int64

    /// For a file that isn't an object's.
    static func bytes(_ bytes: Int64) -> Promise { Promise(object: nil, run: nil, bytes: bytes) }

    /// For all that an object lacks.
    static func rest(of object: CachedObject) -> Promise {
      Promise(object: object, run: nil, bytes: object.lackingBytes)
    }

    /// For blocks of an object.
    static func blocks(_ run: Range<Int>, of object: CachedObject) -> Promise {
      Promise(object: object, run: run, bytes: Int64(object.version.range(of: run).count))
    }

    /// Whether the blocks that it is for are there by now.
    var isFulfilled: Bool {
      guard let object, let run else { return false }
      return object.missingBytes(of: Set(run)) == 0
    }

    /// Whether it is for the same bytes of an object as another one, and maybe more.
    fileprivate func covers(_ other: Promise) -> Bool {
      guard let object, object === other.object else { return false }
      guard let run else { return true }
      return other.run.map { $0.clamped(to: run) == $0 } ?? false
    }
  }

  private(set) var entries: [ObjectKey: Entry] = [:]
  /// Objects whose files are being created or removed.
  var busy: [ObjectKey: SharedTask] = [:]
  /// How much of the disk all objects take, in bytes.
  private(set) var cost: Int64 = 0
  /// Those that aren't held.
  private var order = EvictionOrder()
  private var promises: [ObjectIdentifier: Promise] = [:]

  /// How much of the disk the objects take that aren't held, in bytes.
  var evictableBytes: Int64 { order.cost }

  /// The objects that aren't held. O(objects).
  var unheldKeys: [ObjectKey] { entries.filter { $0.value.holds == 0 }.map(\.key) }

  // MARK: Objects

  /// Adds an object that isn't held, as the one that was used last.
  mutating func insert(
    _ key: ObjectKey, _ object: CachedObject?, cost: Int64, touchedAt: Timestamp = Timestamp(milliseconds: 0)
  ) {
    remove(key)
    entries[key] = Entry(cost: cost, touchedAt: touchedAt, object: object)
    order.append(key, cost: cost)
    self.cost += cost
  }

  /// Removes an object, even if it is held.
  @discardableResult
  mutating func remove(_ key: ObjectKey) -> Entry? {
    guard let entry = entries.removeValue(forKey: key) else { return nil }
    order.remove(key)
    cost -= entry.cost
    return entry
  }

  /// Whether this is still the object with its key, and not a later one.
  func has(_ object: CachedObject) -> Bool { entries[object.key]?.object === object }

  /// Holds an object, if the table has it, once more.
  mutating func hold(_ key: ObjectKey) {
    order.remove(key)
    entries[key]?.holds += 1
  }

  /// Releases an object, if the table still has it, once. After the last time, it is the one that was used last.
  mutating func release(_ object: CachedObject) {
    guard has(object), let entry = entries[object.key] else { return }
    entries[object.key]?.holds -= 1
    if entry.holds == 1 { order.append(object.key, cost: entry.cost) }
  }

  /// Records how much of the disk a held object takes now, if the table still has it.
  mutating func update(_ object: CachedObject) {
    guard has(object), let entry = entries[object.key] else { return }
    precondition(entry.holds > 0, "an object is held while it is filled")
    let new = object.cost
    cost += new - entry.cost
    entries[object.key]?.cost = new
  }

  /// Whether the file times of an object must be set to `now`, as it is from then on: once a minute.
  mutating func touch(_ key: ObjectKey, at now: Timestamp) -> Bool {
    guard let entry = entries[key], now.milliseconds - entry.touchedAt.milliseconds > 60_000 else { return false }
    entries[key]?.touchedAt = now
    return true
  }

  /// Returns the object to evict next and its cost, unless that is more than `most`, and makes it busy with a task.
  mutating func takeVictim(costingAtMost most: Int64, for task: SharedTask) -> (key: ObjectKey, cost: Int64)? {
    var next = order.first
    while let key = next, busy[key] != nil { next = order.next(after: key) }
    guard let key = next, let entry = entries[key], entry.cost <= most else { return nil }
    busy[key] = task
    return (key, entry.cost)
  }

  // MARK: Room

  /// Room on the disk that was promised and isn't used yet, in bytes; `.max` if it is more. O(promises).
  var promisedBytes: Int64 {
    let byObject = Dictionary(grouping: promises.values) { $0.object.map(ObjectIdentifier.init) }
    let counts = byObject.flatMap { object, promises in
      object == nil ? promises.map(\.bytes) : [Self.bytes(ofOneObject: promises)]
    }
    return counts.reduce(0) { sum, count in
      let (next, overflows) = sum.addingReportingOverflow(count)
      return overflows ? .max : next
    }
  }

  /// Several may fetch one object, or the same blocks of it.
  private static func bytes(ofOneObject promises: [Promise]) -> Int64 {
    guard let object = promises.first?.object else { return 0 }
    guard promises.allSatisfy({ $0.run != nil }) else { return object.lackingBytes }
    let blocks = promises.reduce(into: Set<Int>()) { $0.formUnion($1.run ?? 0..<0) }
    return max(0, object.missingBytes(of: blocks) - object.uncountedBytes)
  }

  /// The objects that room was promised for. O(promises).
  var promisedObjects: [CachedObject] { promises.values.compactMap(\.object) }

  /// Whether room was promised for the same bytes of an object already. O(promises).
  func hasPromised(_ promise: Promise) -> Bool {
    promises.values.contains { $0.covers(promise) }
  }

  /// Adds a promise of room, until it is used or ends.
  mutating func add(_ promise: Promise, _ id: ObjectIdentifier) { promises[id] = promise }

  /// Records that bytes have been written.
  mutating func use(_ id: ObjectIdentifier, _ bytes: Int64) {
    guard let left = promises[id]?.bytes else { return }
    promises[id]?.bytes = max(0, left - bytes)
  }

  /// Ends a promise.
  mutating func end(_ id: ObjectIdentifier) { promises[id] = nil }
}
