import Storage

/// The objects of a cache that may be evicted, the one that was released first in front, and how much of the disk they
/// take. Every member is O(1).
struct EvictionOrder: Sendable {
  private struct Place {
    var cost: Int64
    var before: ObjectKey?
    var after: ObjectKey?
  }

  private var places: [ObjectKey: Place] = [:]
  private var last: ObjectKey?
  /// The object to evict first; nil if there is none.
  private(set) var first: ObjectKey?
  /// The cost of all of them, in bytes.
  private(set) var cost: Int64 = 0

  /// Returns the object after another one of them; nil if that is the last.
  func next(after key: ObjectKey) -> ObjectKey? { places[key]?.after }

  /// Adds an object that isn't one of them, at the end.
  mutating func append(_ key: ObjectKey, cost: Int64) {
    precondition(places[key] == nil, "an object is released once")
    places[key] = Place(cost: cost, before: last)
    if let last { places[last]?.after = key } else { first = key }
    last = key
    self.cost += cost
  }

  /// Removes an object if it is one of them.
  mutating func remove(_ key: ObjectKey) {
    guard let place = places.removeValue(forKey: key) else { return }
    if let before = place.before { places[before]?.after = place.after } else { first = place.after }
    if let after = place.after { places[after]?.before = place.before } else { last = place.before }
    cost -= place.cost
  }
}
