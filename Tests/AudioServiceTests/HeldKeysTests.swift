import PresentRows
import Synchronization
import Terms
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

/// Keys that a process holds in a catalog that others share.
@Suite struct HeldKeysTests {
  /// An engine that can't write, as tests say.
  private final class ReadOnlyEngine: PassingEngine {
    let engine: any SQLEngine
    private let fails: @Sendable () -> Bool

    init(_ engine: any SQLEngine, fails: @escaping @Sendable () -> Bool) { (self.engine, self.fails) = (engine, fails) }

    func write<Value: Sendable>(
      _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
    ) throws(StorageError) -> Value {
      if fails() { throw .busy }
      return try engine.write(isolation, body)
    }
  }

  private let hand = ManualClock()
  private let fails: Flag
  private let bench: TestBench
  private let keys: HeldKeys
  private let other: TenantCatalog
  private let name = HeldKeys.Name(tenant: .none, scope: "s", key: "k")

  private final class Flag: Sendable {
    let value = Mutex(false)
  }

  init() throws {
    let fails = Flag()
    self.fails = fails
    let clock = hand.clock
    bench = try TestBench(
      holder: LeaseHolder(name: "node", terms: LeaseHolder.Terms()), { $0.clock = clock },
      engine: { ReadOnlyEngine($0) { fails.value.withLock { $0 } } })
    keys = HeldKeys(bench.catalog, work: bench.context.work)
    other = try Catalog(
      path: bench.store.catalogPath, holder: LeaseHolder(name: "other", terms: LeaseHolder.Terms()), clock: clock
    ).of(.none)
  }

  private func leaseEnd() throws -> Int64? {
    try bench.catalog.read { try $0.first("SELECT lease_until FROM held_keys", as: Int64.self) }
  }

  @Test func aKeyIsRenewedUntilItIsGivenBack() async throws {
    #expect(try keys.hold(name) == .held(nil))
    for _ in 0..<3 {
      await hand.run(for: 20)
      #expect(try leaseEnd() == (hand.clock.time + 30).milliseconds)
    }
    #expect(try other.holdKey(scope: "s", key: "k") == .inUse)
    keys.release(name)
    #expect(try other.holdKey(scope: "s", key: "k") == .held(nil))
    #expect(try keys.hold(name) == .inUse)
    // It isn't this process's to give back.
    keys.release(name)
    #expect(try keys.hold(name) == .inUse)
  }

  @Test func aKeyThatCannotBeGivenBackIsGivenBackLater() async throws {
    #expect(try keys.hold(name) == .held(nil))
    fails.value.withLock { $0 = true }
    keys.release(name)
    #expect(try keys.hold(name) == .inUse)
    fails.value.withLock { $0 = false }
    await hand.run(for: 5)
    #expect(try leaseEnd() == nil)
    #expect(try keys.hold(name) == .held(nil))
    keys.release(name)
  }
}
