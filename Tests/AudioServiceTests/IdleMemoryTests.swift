import Synchronization
import Terms
import Testing

@testable import AudioService

/// When memory is returned to the system.
@Suite struct IdleMemoryTests {
  private final class Trims: Sendable {
    let count = Atomic<Int>(0)
    var value: Int { count.load(ordering: .sequentiallyConsistent) }
  }

  private let hand = ManualClock()

  @Test func memoryIsReturnedAfterEachFloodButNotAfterAFewRequests() {
    let trims = Trims()
    let memory = IdleMemory(hand.clock) { trims.count.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    for flood in 1...3 {
      for _ in 0..<IdleMemory.requestsWorthALook { memory.requestEnded() }
      hand.advance(by: 9)
      #expect(trims.value == flood - 1)
      hand.advance(by: 1)
      #expect(trims.value == flood)
    }
    // The count starts over each time.
    for _ in 1..<IdleMemory.requestsWorthALook { memory.requestEnded() }
    hand.advance(by: 1000)
    #expect(trims.value == 3)
  }

  @Test func aLongUploadCountsAsManyRequests() {
    let trims = Trims()
    let memory = IdleMemory(hand.clock) { trims.count.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    let length = Int64(IdleMemory.requestsWorthALook - 1) * IdleMemory.bytesLikeARequest
    memory.requestEnded(bytesReceived: length - 1)
    hand.advance(by: 10)
    #expect(trims.value == 0)
    memory.requestEnded(bytesReceived: length)
    hand.advance(by: 10)
    #expect(trims.value == 1)
  }

  @Test func memoryIsReturnedAlsoIfRequestsNeverPause() {
    let trims = Trims()
    let memory = IdleMemory(hand.clock, pausesToWait: 3) {
      trims.count.wrappingAdd(1, ordering: .sequentiallyConsistent)
    }
    for _ in 0..<9 {
      for _ in 0..<1000 { memory.requestEnded() }
      hand.advance(by: 10)
    }
    #expect(trims.value == 3)
  }

  @Test func aFloodThatEndsWhileMemoryIsReturnedIsNotForgotten() {
    let floods = Floods()
    floods.memory = IdleMemory(hand.clock) { [weak floods] in
      if floods?.trims.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue == 1 { floods?.flood() }
    }
    floods.flood()
    hand.advance(by: 20)
    #expect(floods.trims.load(ordering: .sequentiallyConsistent) == 2)
  }

  private final class Floods: @unchecked Sendable {
    // Written before the first flood.
    var memory: IdleMemory?
    let trims = Atomic<Int>(0)

    func flood() {
      for _ in 0..<IdleMemory.requestsWorthALook { memory?.requestEnded() }
    }
  }

  @Test func nothingIsDoneWhileTheFloodLasts() {
    let trims = Trims()
    let memory = IdleMemory(hand.clock) { trims.count.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    for _ in 0..<29 {
      for _ in 0..<1000 { memory.requestEnded() }
      hand.advance(by: 10)
    }
    #expect(trims.value == 0)
  }
}
