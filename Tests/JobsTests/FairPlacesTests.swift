import Storage
import Terms
import Testing

@testable import Jobs

/// Which callers get a place and which are turned away.
@Suite struct FairPlacesTests {
  private let crowd = Client(key: "crowd")
  private let other = Client(key: "other")

  private func places(_ change: (inout FairPlaces.Limits) -> Void = { _ in }) -> FairPlaces {
    var limits = FairPlaces.Limits(places: 3, placesPerClient: 2, waiting: 6, waitingPerClient: 4)
    change(&limits)
    return FairPlaces(limits, .system)
  }

  /// Starts a caller that waits. It is in the queue on return.
  private func waiter(
    _ places: FairPlaces, _ client: Client, of recording: RecordingID? = nil
  ) throws -> Task<Void, any Error> {
    let before = places.waitingCount
    let task = Task.immediate { try await places.take(for: client, of: recording) }
    try #require(places.waitingCount == before + 1)
    return task
  }

  @Test func aCrowdLeavesAPlaceForAnotherClient() async throws {
    let places = places()
    for _ in 0..<2 { try await places.take(for: crowd) }
    let waiting = try waiter(places, crowd)
    try await places.take(for: other)
    #expect(places.waitingCount == 1)
    places.give(back: crowd)
    try await waiting.value
  }

  @Test func waitingClientsTakeTurns() async throws {
    let places = places { $0.placesPerClient = 3 }
    for _ in 0..<3 { try await places.take(for: crowd) }
    let first = try waiter(places, crowd)
    let second = try waiter(places, crowd)
    let newcomer = try waiter(places, other)
    places.give(back: crowd)
    try await newcomer.value
    #expect(places.waitingCount == 2)
    places.give(back: other)
    try await first.value
    places.give(back: crowd)
    try await second.value
  }

  @Test func oneRecordingLeavesAPlaceForTheClientsOthers() async throws {
    let places = places { $0.placesPerRecording = 1 }
    let (slow, good) = (RecordingID(), RecordingID())
    try await places.take(for: crowd, of: slow)
    let waiting = try waiter(places, crowd, of: slow)
    try await places.take(for: crowd, of: good)
    // Another client's callers of the same recording have places of their own.
    try await places.take(for: other, of: slow)
    places.give(back: crowd, of: good)
    #expect(places.waitingCount == 1)
    places.give(back: crowd, of: slow)
    try await waiting.value
    places.give(back: crowd, of: slow)
    try await places.take(for: crowd, of: slow)
  }

  @Test func theQueueIsLimitedPerClientAndInTotal() async throws {
    let places = places()
    for _ in 0..<2 { try await places.take(for: crowd) }
    var waiting: [Task<Void, any Error>] = []
    for _ in 0..<4 { waiting.append(try waiter(places, crowd)) }
    await #expect(throws: FairPlaces.Refusal.clientIsFull(limit: 4)) { try await places.take(for: crowd) }
    // One caller takes the free place, and the others fill the queue.
    try await places.take(for: other)
    waiting.append(try waiter(places, Client(key: "a")))
    waiting.append(try waiter(places, Client(key: "b")))
    await #expect(throws: FairPlaces.Refusal.full(limit: 6)) { try await places.take(for: Client(key: "c")) }
    for task in waiting { task.cancel() }
    for task in waiting { await #expect(throws: FairPlaces.Refusal.cancelled) { try await task.value } }
    #expect(places.waitingCount == 0)
  }

  @Test func aCancelledCallerLosesItsTurn() async throws {
    let places = places { $0.placesPerClient = 3 }
    for _ in 0..<3 { try await places.take(for: crowd) }
    let gone = try waiter(places, other)
    let next = try waiter(places, crowd)
    gone.cancel()
    await #expect(throws: FairPlaces.Refusal.cancelled) { try await gone.value }
    places.give(back: crowd)
    try await next.value
    // Canceled before the call.
    let never = Task { try await places.take(for: other) }
    never.cancel()
    _ = await never.result
    #expect(places.waitingCount == 0)
  }
}
