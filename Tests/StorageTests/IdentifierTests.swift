import Dispatch
import Foundation
import PresentRows
import Synchronization
import Testing

@testable import Storage

@Suite struct IdentifierTests {
  @Test("IDs sort in the order of creation, as values and as text")
  func order() {
    let ids = (0..<20_000).map { _ in RecordingID() }
    #expect(zip(ids, ids.dropFirst()).allSatisfy { $0 < $1 && $0.text < $1.text })
  }

  @Test("IDs created by several threads at once are all different")
  func uniqueness() {
    let all = Mutex<Set<JobID>>([])
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      let ids = (0..<5000).map { _ in JobID() }
      all.withLock { $0.formUnion(ids) }
    }
    #expect(all.withLock { $0.count } == 40_000)
  }

  @Test("an ID survives encoding and decoding")
  func roundTrip() throws {
    for _ in 0..<1000 {
      let id = RecordingID()
      #expect(RecordingID(id.text) == id)
      #expect(id.text.utf8.count == 36)
    }
    let ids = [JobID(), JobID()]
    #expect(try JSONDecoder().decode([JobID].self, from: JSONEncoder().encode(ids)) == ids)
  }

  @Test("an ID begins with the time of its creation")
  func time() throws {
    let before = Timestamp.now.milliseconds
    let digits = RecordingID().text.filter { $0 != "-" }.prefix(12)
    let made = try #require(Int64(digits, radix: 16))
    // The counter may have borrowed a few milliseconds from the future, because other tests create IDs by the thousand.
    #expect(made >= before && made < before + 60_000)
  }

  @Test(
    "anything but an ID in its canonical form is refused",
    arguments: [
      "", " ", "0199c0de-0000-7000-8000-00000000000", "0199c0de-0000-7000-8000-0000000000000",
      "0199C0DE-0000-7000-8000-000000000000", "0199c0de-0000-4000-8000-000000000000",
      "0199c0de-0000-7000-c000-000000000000", "0199c0de-0000-7000-0000-000000000000",
      "0199c0de00000-7000-8000-000000000000", "0199c0de-0000-7000-8000-00000000000g",
      "{199c0de-0000-7000-8000-000000000000", "../../../etc/7000-8000-0000000passwd",
      "0199c0de-0000-7000-8000-00000000000\0",
      "０199c0de-0000-7000-8000-0000000000", "-0199c0d-e000-7000-8000-000000000000",
    ])
  func refusal(text: String) {
    #expect(RecordingID(text) == nil)
  }

  @Test("an invalid ID in JSON is a decoding error")
  func refusedJSON() {
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode([RecordingID].self, from: Data(#"["0199C0DE-0000-7000-8000-000000000000"]"#.utf8))
    }
  }

  @Test("the stamp increases when the clock stops, is set back, or the counter overflows")
  func clock() {
    var clock = UUIDClock()
    #expect(clock.advance(to: 10, fresh: 4094) == 10 << 12 | 4094)
    #expect(clock.advance(to: 10, fresh: 7) == 10 << 12 | 4095)
    #expect(clock.advance(to: 10, fresh: 7) == 11 << 12)
    #expect(clock.advance(to: 3, fresh: 7) == 11 << 12 | 1)
    #expect(clock.advance(to: 12, fresh: 7) == 12 << 12 | 7)
  }
}
