import Storage
import Synchronization

/// What a cache finds a value by. It names the tenant that the value belongs to, so that a value can't be found for
/// another one, and a tenant that asks for another's finds what it finds for an ID that was never given: nothing.
protocol TenantKey: Hashable, Sendable {
  /// The owner of the value.
  var tenant: Tenant { get }
}

extension Owned: TenantKey {}

/// A cache of values made from rows, files, and jobs, as long as they are current and there is room.
///
/// A key has a version, which changes with everything that its value is made from. A value is stored with the version
/// that was read before the value was made, and it's current while the key still has that version. So a value made from
/// something that has changed since is never returned, and needn't be removed.
///
/// The limit applies to the sum of all costs and is divided into two halves. A value is added to the young half; a
/// lookup moves a value there from the old half. When the young half is full, it becomes the old one, and the previous
/// old one is dropped: its values haven't been used since.
///
/// The closures run outside the lock. Values are released there too, because that may close files.
final class Cache<Key: TenantKey, Version: Equatable & Sendable, Value: Sendable>: Sendable {
  private struct Entry {
    let value: Value
    let version: Version
    let cost: Int
  }

  private struct State {
    var young: [Key: Entry] = [:]
    var old: [Key: Entry] = [:]
    var youngCost = 0
  }

  private let state = Mutex(State())
  private let limit: Int
  private let cost: @Sendable (Value) -> Int
  /// Returns the current version of a key. Call it before reading anything that the value is made from.
  let version: @Sendable (Key) -> Version

  /// Creates an empty cache.
  ///
  /// `limit` is the maximum sum of all costs. `cost` returns the cost of a value, by default 1; a value that costs more
  /// than half of the limit isn't stored.
  init(
    limit: Int, cost: @escaping @Sendable (Value) -> Int = { _ in 1 }, version: @escaping @Sendable (Key) -> Version
  ) {
    (self.limit, self.cost, self.version) = (limit, cost, version)
  }

  /// The current value of a key; nil if there is none.
  subscript(key: Key) -> Value? {
    let now = version(key)
    let (young, old) = state.withLock { state in
      let young = state.young[key]
      return (young, young == nil ? state.old[key] : nil)
    }
    guard let entry = young ?? old else { return nil }
    guard entry.version == now else {
      remove(key)
      return nil
    }
    if young == nil { insert(entry.value, for: key, now, entry.cost) }
    return entry.value
  }

  /// Returns the current value of each key, or nil, with one look into the cache: threads that look for fifty keys one
  /// by one wait for each other most of the time.
  func values(of keys: [Key]) -> [Value?] {
    let versions = keys.map(version)
    let entries = state.withLock { state in
      keys.map { key in
        let young = state.young[key]
        return (entry: young ?? state.old[key], isOld: young == nil)
      }
    }
    return keys.indices.map { index in
      guard let entry = entries[index].entry, entry.version == versions[index] else { return nil }
      if entries[index].isOld { insert(entry.value, for: keys[index], entry.version, entry.cost) }
      return entry.value
    }
  }

  /// Stores a value that was made after `version` was read.
  func keep(_ value: Value, for key: Key, version: Version) {
    let cost = cost(value)
    guard cost <= limit / 2 else { return }
    insert(value, for: key, version, cost)
  }

  /// Removes the value of a key, to close its files early.
  func remove(_ key: Key) {
    let removed = state.withLock { state in
      let young = state.young.removeValue(forKey: key)
      state.youngCost -= young?.cost ?? 0
      return (young, state.old.removeValue(forKey: key))
    }
    withExtendedLifetime(removed) {}
  }

  /// Removes all values that aren't current, to close their files early. O(values).
  func removeOutdated() {
    let versions = state.withLock { state in (Array(state.young) + state.old).map { ($0.key, $0.value.version) } }
    for (key, version) in versions where self.version(key) != version { remove(key) }
  }

  /// Removes the values of all keys that `condition` holds for. Looks at every key.
  func remove(where condition: (Key) -> Bool) {
    let keys = state.withLock { state in state.young.keys.filter(condition) + state.old.keys.filter(condition) }
    for key in keys { remove(key) }
  }

  private func insert(_ value: Value, for key: Key, _ version: Version, _ cost: Int) {
    let removed = state.withLock { state in
      var dropped: [Key: Entry] = [:]
      if state.youngCost + cost > limit / 2 {
        dropped = state.old
        state = State(old: state.young)
      }
      let replaced = state.young.updateValue(Entry(value: value, version: version, cost: cost), forKey: key)
      state.youngCost += cost - (replaced?.cost ?? 0)
      return (dropped, replaced, state.old.removeValue(forKey: key))
    }
    withExtendedLifetime(removed) {}
    // Changed or removed since: the value would only keep its files open.
    if self.version(key) != version { remove(key) }
  }
}
