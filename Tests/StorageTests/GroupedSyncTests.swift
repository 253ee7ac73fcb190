import Dispatch
import Glibc
import Synchronization
import Testing

@testable import Storage

struct GroupedSyncTests {
  @Test("one sync serves all who asked before it began")
  func grouping() throws {
    let (began, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let count = Atomic(0)
    let sync = GroupedSync(path: "/") { _ in
      count.wrappingAdd(1, ordering: .relaxed)
      began.signal()
      gate.wait()
    }
    let group = DispatchGroup()
    let ask: @Sendable () -> Void = { try? sync.run() }
    DispatchQueue(label: "first").async(group: group, execute: ask)
    began.wait()
    for number in 0..<9 { DispatchQueue(label: "\(number)").async(group: group, execute: ask) }
    while sync.askedCount < 10 { usleep(1000) }
    gate.signal()
    began.wait()
    gate.signal()
    group.wait()
    #expect(count.load(ordering: .relaxed) == 2)
    gate.signal()
    try sync.run()
    #expect(count.load(ordering: .relaxed) == 3)
  }

  @Test("a sync that fails fails for all whom it was to serve, and the next is tried")
  func failure() throws {
    let (began, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let count = Atomic(0)
    let sync = GroupedSync(path: "/") { path throws(StorageError) in
      began.signal()
      gate.wait()
      // The second.
      if count.wrappingAdd(1, ordering: .relaxed).newValue == 2 {
        throw .io(operation: "fsync", path: path, errno: EIO)
      }
    }
    let group = DispatchGroup()
    let failures = Atomic(0)
    let ask: @Sendable () -> Void = { do { try sync.run() } catch { failures.wrappingAdd(1, ordering: .relaxed) } }
    DispatchQueue(label: "first").async(group: group, execute: ask)
    began.wait()
    for number in 0..<3 { DispatchQueue(label: "\(number)").async(group: group, execute: ask) }
    while sync.askedCount < 4 { usleep(1000) }
    for _ in 0..<3 { gate.signal() }
    group.wait()
    #expect(count.load(ordering: .relaxed) == 2 && failures.load(ordering: .relaxed) == 3)
    try sync.run()
  }
}
