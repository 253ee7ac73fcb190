import Synchronization
import Testing

@testable import AudioService

/// When memory is returned to the system.
@Suite struct IdleMemoryTests {
  private final class Trims: Sendable {
    let count = Atomic<Int>(0)
    var value: Int { count.load(ordering: .sequentiallyConsistent) }
  }

  private func eventually(_ condition: () -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(300)
    while !condition() {
      try #require(ContinuousClock.now < deadline, "what was waited for never came")
      await Task.yield()
    }
  }

  @Test func memoryIsReturnedAfterEachFloodButNotAfterAFewRequests() async throws {
    let trims = Trims()
    let memory = IdleMemory(pauseSeconds: 0.001) { trims.count.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    for flood in 1...3 {
      for _ in 0..<IdleMemory.requestsWorthALook { memory.requestEnded() }
      try await eventually { trims.value == flood }
    }
    // The count starts over each time.
    for _ in 1..<IdleMemory.requestsWorthALook { memory.requestEnded() }
    #expect(trims.value == 3)
  }

  @Test func aLongUploadCountsAsManyRequests() async throws {
    let trims = Trims()
    let memory = IdleMemory(pauseSeconds: 0.001) { trims.count.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    let length = Int64(IdleMemory.requestsWorthALook - 1) * IdleMemory.bytesLikeARequest
    memory.requestEnded(bytesReceived: length - 1)
    #expect(trims.value == 0)
    memory.requestEnded(bytesReceived: length)
    try await eventually { trims.value == 1 }
  }

  @Test func memoryIsReturnedAlsoIfRequestsNeverPause() async throws {
    let trims = Trims()
    let memory = IdleMemory(pauseSeconds: 0.001, pausesToWait: 3) {
      trims.count.wrappingAdd(1, ordering: .sequentiallyConsistent)
    }
    try await eventually {
      for _ in 0..<1000 { memory.requestEnded() }
      return trims.value >= 3
    }
  }

  @Test func aFloodThatEndsWhileMemoryIsReturnedIsNotForgotten() async throws {
    let floods = Floods()
    floods.memory = IdleMemory(pauseSeconds: 0.001) { [weak floods] in
      if floods?.trims.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue == 1 { floods?.flood() }
    }
    floods.flood()
    try await eventually { floods.trims.load(ordering: .sequentiallyConsistent) == 2 }
  }

  private final class Floods: @unchecked Sendable {
    // Written before the first flood.
    var memory: IdleMemory?
    let trims = Atomic<Int>(0)

    func flood() {
      for _ in 0..<IdleMemory.requestsWorthALook { memory?.requestEnded() }
    }
  }

  @Test func nothingIsDoneWhileTheFloodLasts() async throws {
    let trims = Trims()
    let memory = IdleMemory(pauseSeconds: 1000) { trims.count.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    for _ in 0..<1000 { memory.requestEnded() }
    #expect(trims.value == 0)
  }
}
