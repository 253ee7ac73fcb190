import Randomness
import Testing

@testable import HTTP

@Suite struct DeadlineHeapTests {
  @Test func entriesComeOutInOrderAndOnlyWhenDue() {
    var heap = DeadlineHeap()
    var generator = TestRandom(for: 1)
    let times = (UInt64(0)..<500).shuffled(using: &generator)
    for time in times { heap.insert(.init(deadline: Instant(nanoseconds: time), owner: time)) }
    var popped: [UInt64] = []
    while let entry = heap.popDue(at: Instant(nanoseconds: 299)) { popped.append(entry.owner) }
    #expect(popped == Array(0..<300))
    #expect(heap.first == Instant(nanoseconds: 300))
    #expect(heap.count == 200)
  }
}

@Suite("One heap of deadlines for all connections") struct ReminderTests {
  /// Simulates a connection with a request every second for two hours, whose heads come in two pieces. Returns the
  /// largest number of entries in the heap during each hour.
  private func mostEntries() -> [Int] {
    var (heap, reminder, most) = (DeadlineHeap(), Reminder(), [0, 0])
    var now = Instant(nanoseconds: 1)
    var state = ConnectionState(limits: HTTPLimits(), at: now)
    func remind() {
      if let entry = reminder.newEntry(for: state.deadline) { heap.insert(.init(deadline: entry, owner: 1)) }
    }
    for second in 0..<7200 {
      now = now.adding(seconds: 1)
      while let due = heap.popDue(at: now) {
        guard reminder.hasCome(due.deadline) else { continue }
        _ = state.on(.deadline, at: now)
        remind()
      }
      _ = state.on(.headBegan, at: now)
      remind()
      _ = state.on(.head(body: .none, isPersistent: true, expectsContinue: false), at: now)
      _ = state.on(.answerBegan(unread: 0, isPersistent: true), at: now)
      _ = state.on(.answerWritten, at: now)
      remind()
      #expect(state.phase == .idle)
      most[second / 3600] = max(most[second / 3600], heap.count)
    }
    return most
  }

  @Test func aLongLivedConnectionDoesNotAccumulateEntries() {
    let most = mostEntries()
    #expect(most[0] <= 8)
    #expect(most[1] <= most[0])
  }

  @Test func anEarlierDeadlineReplacesALaterOne() {
    var reminder = Reminder()
    let (soon, late) = (Instant(nanoseconds: 10), Instant(nanoseconds: 20))
    #expect(reminder.newEntry(for: late) == late)
    #expect(reminder.newEntry(for: late) == nil)
    #expect(reminder.newEntry(for: soon) == soon)
    let hasCome = [reminder.hasCome(soon), reminder.hasCome(late)]
    #expect(hasCome == [true, false], "the entry that was overtaken is no reminder")
    #expect(reminder.newEntry(for: nil) == nil)
    #expect(reminder.newEntry(for: late) == late)
  }
}
