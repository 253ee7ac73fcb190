import Dispatch
import Glibc
import Synchronization
import Testing

@testable import Storage

struct GroupedSyncTests {
  @Test("one sync serves all who asked before it began, also with its failure", arguments: [false, true])
  func grouping(fails: Bool) throws {
    let (called, began) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let gate = DispatchSemaphore(value: 0)
    let count = Atomic(0)
    let failures = Atomic(0)
    let sync = GroupedSync(path: "/", onCall: { called.signal() }) { path throws(StorageError) in
      began.signal()
      gate.wait()
      if count.wrappingAdd(1, ordering: .relaxed).newValue == 2, fails {
        throw .io(operation: "fsync", path: path, errno: EIO)
      }
    }
    let group = DispatchGroup()
    for number in 0..<10 {
      DispatchQueue(label: "\(number)").async(group: group) {
        do { try sync.run() } catch { failures.wrappingAdd(1, ordering: .relaxed) }
      }
      called.wait()
      if number == 0 { began.wait() }
    }
    for _ in 0..<3 { gate.signal() }
    group.wait()
    #expect(count.load(ordering: .relaxed) == 2 && failures.load(ordering: .relaxed) == (fails ? 9 : 0))
    try sync.run()
    #expect(count.load(ordering: .relaxed) == 3)
  }
}
