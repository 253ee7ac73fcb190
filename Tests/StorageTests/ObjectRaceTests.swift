import Dispatch
import Foundation
import PresentRows
import Synchronization
import Testing

@testable import Storage

/// Nodes that name objects while others collect, at a time when the day of an announcement is over by some answers of
/// the clock and not by others.
@Suite(.onEveryEngine) struct ObjectRaceTests {
  private let folder: TemporaryFolder
  private let nodes: [Catalog]
  private static let threads = 8

  init() throws {
    folder = try TemporaryFolder()
    let (path, start) = (folder("catalog.sqlite"), Timestamp(milliseconds: 1_800_000_000_000))
    let clock = Clock()
    nodes = try (0..<2).map { _ in
      let holder = LeaseHolder(name: "node", terms: LeaseHolder.Terms(), now: { start + (clock.isLate() ? 86_401 : 0) })
      let node = Catalog(engine: try CatalogEngine.current.open(path), holder: holder)
      node.nameDeletedObjects()
      return node
    }
  }

  /// Says every other time that a day has passed.
  private final class Clock: Sendable {
    private let count = Atomic<Int>(0)

    func isLate() -> Bool { count.wrappingAdd(1, ordering: .relaxed).newValue % 2 == 0 }
  }

  /// What the threads did.
  private final class Record: Sendable {
    private struct State {
      var named: Set<ObjectKey> = []
      var removed: Set<ObjectKey> = []
      var errors: [String] = []
      var namersLeft = ObjectRaceTests.threads / 2
    }

    private let state = Mutex(State())

    func note(named key: ObjectKey) { state.withLock { _ = $0.named.insert(key) } }
    func note(removed key: ObjectKey) { state.withLock { _ = $0.removed.insert(key) } }
    func note(_ error: any Error) { state.withLock { $0.errors.append("\(error)") } }
    func endNaming() { state.withLock { $0.namersLeft -= 1 } }

    var isNaming: Bool { state.withLock { $0.namersLeft > 0 } }
    var named: Set<ObjectKey> { state.withLock { $0.named } }
    var removed: Set<ObjectKey> { state.withLock { $0.removed } }
    var errors: [String] { state.withLock { $0.errors } }
  }

  /// Names the recordings' sounds as fast as possible, on one node.
  private static func name(_ recordings: [Recording], _ node: Catalog, _ record: Record) throws {
    defer { record.endNaming() }
    for recording in recordings {
      do {
        try node.insert(recording)
        record.note(named: ObjectKey(recording.id, "audio.wav"))
      } catch StorageError.objectMayBeGone {
        continue
      }
    }
  }

  /// Collects until all are named, as a store of media does.
  private static func collect(_ node: Catalog, _ record: Record) throws {
    repeat {
      let due = try node.takeGarbage(limit: 7)
      for garbage in due {
        guard case .object(let key) = garbage else { continue }
        if try !node.namedObjects(of: key.recording).contains(key) { record.note(removed: key) }
      }
      try node.forget(due)
    } while record.isNaming
  }

  @Test("an object that is named isn't removed, however the naming and a collection meet")
  func naming() async throws {
    let record = Record()
    let recordings = (0..<80).map { _ in
      var recording = sample()
      (recording.audioKey, recording.bytes) = (ObjectKey(recording.id, "audio.wav"), 1)
      return recording
    }
    // Twice, because the clock's answers alternate: half of them are due one day, half of them two days later.
    for part in [recordings.prefix(40), recordings.suffix(40)] { try nodes[0].announce(part.compactMap(\.audioKey)) }
    let group = DispatchGroup()
    for thread in 0..<Self.threads {
      group.enter()
      Thread.detachNewThread { [nodes] in
        let node = nodes[thread / 2 % nodes.count]
        do {
          if thread % 2 == 0 {
            let share = recordings.indices.filter { $0 % (Self.threads / 2) == thread / 2 }.map { recordings[$0] }
            try Self.name(share, node, record)
          } else {
            try Self.collect(node, record)
          }
        } catch {
          record.note(error)
        }
        group.leave()
      }
    }
    await withCheckedContinuation { continuation in group.notify(queue: .global()) { continuation.resume() } }
    #expect(record.errors == [])
    #expect(record.named.intersection(record.removed) == [])
    #expect(!record.named.isEmpty)
  }
}
