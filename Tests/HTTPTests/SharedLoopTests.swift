import Dispatch
import Synchronization
import Testing

@testable import HTTP

/// Stops the loop at `/first` until it may go on, then counts requests, and answers `/other` with their number.
private final class Counting: HTTPResponder {
  let hasBegun = Signal()
  let mayGoOn = DispatchSemaphore(value: 0)
  let count = Atomic<Int>(0)

  func respond(to request: HTTPRequest) -> HTTPAnswer {
    switch request.target.path {
    case "/first":
      hasBegun.give()
      mayGoOn.wait()
    case "/other": return .now(text("\(count.load(ordering: .relaxed))"))
    default: count.wrappingAdd(1, ordering: .relaxed)
    }
    return .now(text("a"))
  }
}

private func get(_ path: String) -> String { "GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n" }

@Suite("Clients that share a loop", .serialized) struct SharedLoopTests {
  @Test func aClientThatNeverWaitsForAnswersLeavesTheOthersTheirTurn() async throws {
    let responder = Counting()
    try await withServer(responder: responder, configuration: configured { $0.loopCount = 1 }) { port, server in
      let (hasty, other) = (try WireClient(port: port), try WireClient(port: port))
      try hasty.send(get("/first") + String(repeating: get("/"), count: 1500))
      await responder.hasBegun.wait()
      // What others have is a block of the loop's queue, whenever Dispatch finds out about it.
      let loop = try #require(server.running.withLock { $0?.workers.first?.loop })
      let before = Atomic<Int>(0)
      loop.async { before.store(responder.count.load(ordering: .relaxed), ordering: .relaxed) }
      try other.send(get("/other"))
      responder.mayGoOn.signal()
      #expect(try other.answer().status == 200)
      for _ in 0...1500 { #expect(try hasty.answer().status == 200) }
      #expect(server.statistics.requests == 1502)
      #expect((1..<100).contains(before.load(ordering: .relaxed)))
    }
  }

  @Test func aClientThatLeavesOrDoesNotReadChangesNoAnswerThatIsSentWithItsOwn() async throws {
    let ended = Mutex<[String: Int]>([:])
    let responder = Counting()
    let configuration = configured {
      $0.loopCount = 1
      $0.onCompleted = { record in ended.withLock { $0[record.path ?? "", default: 0] += 1 } }
    }
    try await withServer(responder: responder, configuration: configuration) { port, server in
      let clients = try (0..<6).map { _ in try WireClient(port: port) }
      for (number, client) in clients.enumerated() {
        try client.send(get("/\(number)"))
        #expect(try client.answer().status == 200)
      }
      let first = try WireClient(port: port)
      try first.send(get("/first"))
      await responder.hasBegun.wait()
      for (number, client) in clients.enumerated() { try client.send(get("/\(number)")) }
      clients[2].reset()
      responder.mayGoOn.signal()
      #expect(try first.answer().status == 200)
      for number in [0, 1, 3, 4, 5] { #expect(try clients[number].answer().body == "a") }
      while server.statistics.openConnections > 6 { await Task.yield() }
    }
    #expect(ended.withLock { $0.values.allSatisfy { $0 <= 2 } && $0["/0"] == 2 && $0["/5"] == 2 })
  }
}
