import Synchronization

/// A count that only grows.
final class Counter: Sendable {
  private let count = Atomic<Int>(0)

  var value: Int { count.load(ordering: .relaxed) }
  func add(_ amount: Int) { count.wrappingAdd(amount, ordering: .relaxed) }
}
