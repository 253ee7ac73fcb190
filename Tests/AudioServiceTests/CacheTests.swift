import Storage
import Synchronization
import Testing

@testable import AudioService
@testable import Jobs

/// A key, which tests write as a number.
private struct Number: TenantKey {
  let value: Int
  var tenant: Tenant { .none }
}

extension Cache where Key == Number {
  fileprivate subscript(key: Int) -> Value? { self[Number(value: key)] }
  fileprivate func version(_ key: Int) -> Version { version(Number(value: key)) }
  fileprivate func keep(_ value: Value, for key: Int, version: Version) {
    keep(value, for: Number(value: key), version: version)
  }
  fileprivate func remove(_ key: Int) { remove(Number(value: key)) }
}

@Suite struct CacheTests {
  /// Versions that tests change, and a cache of texts that goes by them.
  private final class Bench: Sendable {
    private let versions = Mutex<[Int: Int]>([:])

    func version(_ key: Int) -> Int { versions.withLock { $0[key, default: 0] } }

    func change(_ key: Int) { versions.withLock { $0[key, default: 0] += 1 } }

    fileprivate func cache(limit: Int = 100) -> Cache<Number, Int, String> {
      Cache(limit: limit, cost: { $0.utf8.count }, version: { self.version($0.value) })
    }
  }

  private let bench = Bench()

  private func text(_ cost: Int) -> String { String(repeating: "x", count: cost) }

  @Test func aValueIsCurrentUntilItsKeyChanges() {
    let cache = bench.cache()
    cache.keep("one", for: 1, version: cache.version(1))
    cache.keep("two", for: 2, version: cache.version(2))
    #expect(cache[1] == "one" && cache[3] == nil)
    bench.change(1)
    #expect(cache[1] == nil && cache[2] == "two")
  }

  @Test func aValueThatWasMadeBeforeAChangeIsNotReturnedAfterIt() {
    let cache = bench.cache()
    let version = cache.version(1)
    bench.change(1)
    cache.keep("old", for: 1, version: version)
    #expect(cache[1] == nil)
    cache.keep("new", for: 1, version: cache.version(1))
    #expect(cache[1] == "new")
  }

  @Test func aValueOfTheOldHalfIsHeldAgainstItsVersionToo() {
    let cache = bench.cache()
    for key in 0..<2 { cache.keep(text(40), for: key, version: 0) }
    bench.change(0)
    #expect(cache[0] == nil && cache[1] != nil)
  }

  @Test func outdatedValuesOfBothHalvesAreReleasedAndTheOthersStay() {
    final class Value: Sendable {}
    let bench = bench
    let cache = Cache<Number, Int, Value>(limit: 4, version: { bench.version($0.value) })
    var values = (0..<4).map { _ in Value() }
    let watched = values.map { value in { [weak value] in value != nil } }
    for (key, value) in values.enumerated() { cache.keep(value, for: key, version: 0) }
    values = []
    bench.change(0)
    bench.change(3)
    cache.removeOutdated()
    #expect(watched.map { $0() } == [false, true, true, false])
  }

  /// A value holds files, which must not stay open.
  @Test func aValueThatIsOutdatedWhileItIsStoredIsReleased() throws {
    final class Value: Sendable {}
    let made = Mutex<Cache<Number, Int, Value>?>(nil)
    let bench = bench
    let cache = Cache<Number, Int, Value>(
      limit: 4,
      cost: { _ in
        // The recording is deleted and its files are closed.
        if let cache = made.withLock({ $0 }) {
          bench.change(1)
          cache.remove(1)
        }
        return 1
      }, version: { bench.version($0.value) })
    made.withLock { $0 = cache }
    weak var released: Value?
    do {
      let value = Value()
      released = value
      cache.keep(value, for: 1, version: 0)
    }
    made.withLock { $0 = nil }
    #expect(released == nil)
  }

  @Test func theCostsOfAllValuesStayWithinTheLimit() {
    let cache = bench.cache()
    for key in 0..<50 { cache.keep(text(10), for: key, version: 0) }
    let kept = (0..<50).filter { cache[$0] != nil }
    #expect((5...10).contains(kept.count))
    #expect(kept.contains(49) && !kept.contains(0))
  }

  @Test func aValueThatIsAskedForStays() {
    let cache = bench.cache()
    cache.keep(text(10), for: 0, version: 0)
    for key in 1..<50 {
      cache.keep(text(10), for: key, version: 0)
      #expect(cache[0] != nil)
    }
  }

  @Test("many keys are looked for at once as one by one")
  func many() {
    let cache = bench.cache()
    for key in 0..<20 { cache.keep(text(10) + "\(key)", for: key, version: cache.version(key)) }
    bench.change(18)
    let keys = (0..<22).map { Number(value: $0) }
    let kept = (0..<22).map { $0 == 18 ? nil : cache[$0] }
    #expect(cache.values(of: keys) == kept && kept.compactMap(\.self).count > 2)
    // Those that are asked for stay.
    for key in 30..<60 {
      cache.keep(text(10), for: key, version: 0)
      #expect(cache.values(of: [Number(value: 19)]) == [kept[19]])
    }
  }

  @Test func aValueThatIsKeptAgainCountsOnce() {
    let cache = bench.cache()
    cache.keep(text(40), for: 0, version: 0)
    for _ in 0..<9 { cache.keep(text(10), for: 1, version: 0) }
    #expect(cache[0] != nil && cache[1] != nil)
  }

  @Test func aValueThatWouldPushOutAllOthersIsNotKept() {
    let cache = bench.cache()
    cache.keep(text(10), for: 0, version: 0)
    cache.keep(text(51), for: 1, version: 0)
    #expect(cache[1] == nil && cache[0] != nil)
    cache.keep(text(50), for: 2, version: 0)
    #expect(cache[2] != nil)
  }

  @Test func whatIsRemovedMakesRoom() {
    let cache = bench.cache()
    for key in 0..<50 {
      cache.keep(text(25), for: key, version: 0)
      if key > 0 { cache.remove(key) }
    }
    #expect(cache[0] != nil && cache[49] == nil)
  }

  /// A value that says when it is released.
  private final class Watched: Sendable {
    let released: @Sendable () -> Void

    init(_ released: @escaping @Sendable () -> Void) { self.released = released }

    deinit { released() }
  }

  /// What the cache calls, and the end of what it releases, may use the cache: no lock is held then.
  @Test func valuesAreMadeAndReleasedOutsideOfTheLock() {
    let released = Atomic(0)
    let holder = Mutex<Cache<Number, Int, Watched>?>(nil)
    // Takes the cache's lock.
    let use: @Sendable () -> Void = { holder.withLock { $0 }?.remove(-1) }
    let cache = Cache<Number, Int, Watched>(
      limit: 4,
      version: { _ in
        use()
        return 0
      })
    holder.withLock { $0 = cache }
    for key in 0..<20 {
      cache.keep(
        Watched {
          use()
          released.wrappingAdd(1, ordering: .relaxed)
        }, for: key, version: 0)
    }
    cache.remove(19)
    #expect(released.load(ordering: .relaxed) >= 17)
    holder.withLock { $0 = nil }
  }
}
