import Dispatch
import Foundation
import HTTP
import PresentRows
import Synchronization
import Terms
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

@Suite struct ReadinessTests {
  /// A database that can't be written while `isBroken`.
  private final class BrokenEngine: PassingEngine {
    let engine: any SQLEngine
    private let isBroken: @Sendable () -> Bool

    init(_ engine: any SQLEngine, isBroken: @escaping @Sendable () -> Bool) {
      (self.engine, self.isBroken) = (engine, isBroken)
    }

    func write<Value: Sendable>(
      _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
    ) throws(StorageError) -> Value {
      if isBroken() { throw .unreachable(detail: "no answer") }
      return try engine.write(isolation, body)
    }
  }

  /// Returns the status and code of `/readyz`.
  private func answer(_ bench: TestBench) async throws -> (Int, String) {
    let response = try await bench.respond(.get, "/readyz")
    let text = String(decoding: try await response.body.collect(), as: UTF8.self)
    let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    if response.status != .ok { #expect((object?["detail"] as? String)?.hasSuffix(".") == true || text.contains("?")) }
    #expect(response.fields["Cache-Control"] == "no-store")
    return (response.status.code, try #require((object?["code"] ?? object?["status"]) as? String))
  }

  @Test func aServiceThatCanWorkIsReady() async throws {
    #expect(try await answer(TestBench()) == (200, "ready"))
  }

  @Test("a service that is alone names no node, and its metrics have the time of the catalog's calls")
  func alone() async throws {
    let bench = try TestBench()
    _ = try bench.recording()
    _ = try bench.catalog.recordings(limit: 9)
    let ready = String(decoding: try await bench.respond(.get, "/readyz").body.collect(), as: UTF8.self)
    #expect(ready.contains("\"ready\"") && !ready.contains("\"node\""), "\(ready)")
    let metrics = String(decoding: try await bench.respond(.get, "/metrics").body.collect(), as: UTF8.self)
    for absent in ["stillwave_node_info", "stillwave_feed_age_seconds"] { #expect(!metrics.contains(absent)) }
    for operation in ["read", "write"] {
      let count = #/\nstillwave_catalog_seconds_count\{operation="(?<operation>\w+)"\} (?<count>\d+)\n/#
      let counts = metrics.matches(of: count).filter { $0.operation == operation }.compactMap { Int($0.count) }
      #expect(counts.count == 1 && counts[0] > 0, "\(operation)")
    }
  }

  @Test func aReserveLargerThanTheFreeSpaceIsAFullDisk() async throws {
    #expect(try await answer(TestBench { $0.reservedDiskBytes = .max }) == (503, "disk_full"))
  }

  @Test(arguments: ["incoming", "recordings", "jobs", "removed"])
  func anUnwritableFolderIsReported(name: String) async throws {
    let bench = try TestBench()
    try FileManager.default.removeItem(atPath: bench.folder.path + "/data/" + name)
    #expect(try await answer(bench) == (503, "disk_unwritable"))
  }

  @Test(arguments: ["missing", "not executable", "a folder"])
  func aProgramThatCannotRunIsReported(kind: String) async throws {
    let folder = try TemporaryFolder()
    let bench = try TestBench(in: folder) { $0.program = folder.path + "/other" }
    switch kind {
    case "not executable": try Data("#!/bin/sh\n".utf8).write(to: URL(fileURLWithPath: folder.path + "/other"))
    case "a folder":
      try FileManager.default.createDirectory(atPath: folder.path + "/other", withIntermediateDirectories: true)
    default: break
    }
    #expect(try await answer(bench) == (503, "worker_missing"))
  }

  @Test("what all nodes have in common is no reason to ask another one, and what a node has alone is")
  func commonFaults() {
    let common: [Readiness.Finding] = [.mediaFail(""), .catalogFails(""), .catalogIsBusy, .catalogIsDamaged("")]
    let own: [Readiness.Finding] = [
      .ready, .diskFails(""), .dataFolderIsReplaced(""), .programIsMissing(""), .isLeaving,
    ]
    for sharesDisk in [false, true] {
      for finding in common {
        #expect(finding.isCommon(hasPeers: true, sharesDisk: sharesDisk))
        #expect(!finding.isCommon(hasPeers: false, sharesDisk: sharesDisk))
      }
      for finding in own { #expect(!finding.isCommon(hasPeers: true, sharesDisk: sharesDisk)) }
      #expect(Readiness.Finding.diskIsFull.isCommon(hasPeers: true, sharesDisk: sharesDisk) == sharesDisk)
    }
  }

  @Test func aNodeWhoseCatalogFailsAnswersABalancerThatItIsImpaired() async throws {
    let isBroken = Mutex(false)
    let bench = try TestBench(
      holder: LeaseHolder(name: "one", terms: .init()),
      engine: { BrokenEngine($0) { isBroken.withLock { $0 } } })
    func ask(_ path: String) async throws -> (Int, String) {
      let response = try await bench.respond(.get, path)
      return (response.status.code, String(decoding: try await response.body.collect(), as: UTF8.self))
    }
    #expect(try await ask("/readyz?own=1").1.contains("\"status\":\"ready\""))
    isBroken.withLock { $0 = true }
    try await bench.eventually { try await ask("/readyz").0 == 503 }
    let (status, text) = try await ask("/readyz?own=1")
    #expect(status == 200 && text.contains("\"status\":\"impaired\"") && text.contains("\"catalog_unwritable\""))
    bench.context.readiness.drain()
    #expect(try await ask("/readyz?own=1").0 == 503)
  }

  @Test("a write that keeps others waiting is logged, counted, and named by /readyz while it lasts")
  func heldCatalog() async throws {
    let hand = ManualClock()
    let bench = try TestBench { $0.clock = hand.clock }
    try bench.catalog.write(kind: "rename") { db in
      try db.run("UPDATE heartbeat SET beats = 0")
      hand.advance(by: 12)
      #expect(
        problem(for: .late(bench.catalog)).detail
          == "A write has held the catalog for 12 s, so that others wait: rename, in “UPDATE heartbeat SET beats = 0”.")
      #expect(ReadinessWarning.all(bench.context).map(\.code).contains("catalog_busy"))
    }
    #expect(bench.logged.failures == ["error a write holds the catalog: ", "error a write held the catalog: "])
    let metrics = String(decoding: try await bench.respond(.get, "/metrics").body.collect(), as: UTF8.self)
    #expect(metrics.contains("\nstillwave_catalog_held_total 1\n"))
    #expect(metrics.contains("\nstillwave_catalog_held_seconds 0.0\n"))
    #expect(problem(for: Readiness.Finding.late(bench.catalog)).detail.contains("another program"))
  }

  @Test func aLockedCatalogIsReportedWithoutWaiting() async throws {
    let hand = ManualClock()
    let bench = try TestBench { $0.clock = hand.clock }
    let recording = try bench.recording()
    let other = try Catalog(path: bench.configuration.dataDirectory + "/catalog.sqlite")
    let (isHeld, isOver) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let held = Task.detached {
      try await blocking {
        _ = try other.update(recording.id) { _ in
          isHeld.signal()
          isOver.wait()
        }
      }
    }
    try await blocking { isHeld.wait() }
    // What the writes so far have planned.
    hand.advance(by: 10)
    async let busy = answer(bench)
    await hand.waiting()
    hand.advance(by: 1)
    #expect(try await busy == (503, "catalog_busy"))
    isOver.signal()
    try await held.value
    await hand.idle()
    // A second later, the released lock is noticed.
    hand.advance(by: 1)
    #expect(try await answer(bench) == (200, "ready"))
  }

  @Test("the log says once why the service isn't ready, also if only its metrics are read, and once that it is again")
  func notes() async throws {
    let findings = Mutex<[Readiness.Finding]>([
      .ready, .mediaFail("1"), .mediaFail("2"), .catalogFails("3"), .diskIsFull, .diskIsFull, .ready, .ready,
    ])
    let notes = Mutex<[Readiness.Finding]>([])
    let readiness = Readiness(
      validSeconds: 0, clock: .system, note: { finding in notes.withLock { $0.append(finding) } }
    ) {
      findings.withLock { $0.removeFirst() }
    }
    for _ in 0..<8 { _ = await readiness.finding() }
    #expect(notes.withLock { $0 } == [.mediaFail("1"), .catalogFails("3"), .diskIsFull, .ready])

    let bench = try TestBench { $0.reservedDiskBytes = .max }
    for _ in 0..<3 { _ = try await bench.respond(.get, "/metrics") }
    #expect(bench.logged.all.count { $0.contains("not ready") } == 1)
  }

  @Test func manyWhoAskShareOneLook() async throws {
    let looks = Mutex(0)
    let gate = DispatchSemaphore(value: 0)
    let readiness = Readiness(patienceSeconds: 1000, clock: .system) {
      looks.withLock { $0 += 1 }
      gate.wait()
      return .ready
    }
    await withTaskGroup(of: Readiness.Finding.self) { group in
      for _ in 0..<100 { group.addTask { await readiness.finding() } }
      gate.signal()
      for await finding in group { #expect(finding == .ready) }
    }
    #expect(looks.withLock { $0 } == 1)
  }

  @Test func aCheckThatHangsIsAnAnswer() async throws {
    let looks = Mutex(0)
    let gate = DispatchSemaphore(value: 0)
    let hand = ManualClock()
    let readiness = Readiness(clock: hand.clock) {
      looks.withLock { $0 += 1 }
      gate.wait()
      return .ready
    }
    let first = Task.immediate { await readiness.finding() }
    hand.advance(by: 1)
    #expect(await first.value == .catalogIsBusy)
    for _ in 0..<3 { #expect(await readiness.finding() == .catalogIsBusy) }
    gate.signal()
    await hand.idle()
    #expect(await readiness.finding() == .ready)
    #expect(looks.withLock { $0 } == 1)
  }
}
