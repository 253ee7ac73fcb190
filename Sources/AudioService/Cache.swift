import Synchronization

/// Values made from rows, files and jobs, kept for as long as they are current and there is room.
///
/// One rule says what is current. A key has a version, which changes with whatever its value is made from. A value is
/// kept with the version that its maker read before it began, and it is current while the key still has that version:
/// a value made of something that changed meanwhile is never returned, and nobody has to remove it.
///
/// Room is counted in costs and given in two halves. A value goes to the young half, and one that is asked for in the
/// old half moves there. When the young half is full it becomes the old one, and the old one, whose values nobody has
/// asked for since, is dropped.
///
/// The functions given to it run outside of its lock, and values are released there too: that may close files.
final class Cache<Key: Hashable & Sendable, Version: Equatable & Sendable, Value: Sendable>: Sendable {
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
  private let settle: @Sendable (Value) -> Value
  /// The version that a key has now. Read it before anything that the value is made from.
  let version: @Sendable (Key) -> Version

  /// `limit`: of the sum of all costs. `cost`: of a value, 1 if left out; one above half of the limit is not kept.
  /// `settle`: what becomes of a value when it moves to the young half.
  init(
    limit: Int, cost: @escaping @Sendable (Value) -> Int = { _ in 1 },
    settle: @escaping @Sendable (Value) -> Value = { $0 }, version: @escaping @Sendable (Key) -> Version
  ) {
    (self.limit, self.cost, self.settle, self.version) = (limit, cost, settle, version)
  }

  /// The current value of a key; nil where none is kept.
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
    if young == nil { insert(settle(entry.value), for: key, entry.version, entry.cost) }
    return entry.value
  }

  /// Keeps a value that was made after the key's version was read.
  func keep(_ value: Value, for key: Key, version: Version) {
    let cost = cost(value)
    guard cost <= limit / 2 else { return }
    insert(settle(value), for: key, version, cost)
    // One that has changed meanwhile would only hold its files open.
    if self.version(key) != version { remove(key) }
  }

  /// Releases what is kept of a key, to close its files early.
  func remove(_ key: Key) {
    let removed = state.withLock { state in
      let young = state.young.removeValue(forKey: key)
      state.youngCost -= young?.cost ?? 0
      return (young, state.old.removeValue(forKey: key))
    }
    withExtendedLifetime(removed) {}
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
  }
}
