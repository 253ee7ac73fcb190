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

  /// What the threads did with objects, by their keys.
  private final class Record: Sendable {
    private struct State {
      var named: Set<String> = []
      var removed: Set<String> = []
      var errors: [String] = []
      var namersLeft = ObjectRaceTests.threads / 2
    }

    private let state = Mutex(State())

    func note(named key: String) { state.withLock { _ = $0.named.insert(key) } }
    func note(removed key: String) { state.withLock { _ = $0.removed.insert(key) } }
    func note(_ error: any Error) { state.withLock { $0.errors.append("\(error)") } }
    func endNaming() { state.withLock { $0.namersLeft -= 1 } }

    var isNaming: Bool { state.withLock { $0.namersLeft > 0 } }
    var named: Set<String> { state.withLock { $0.named } }
    var removed: Set<String> { state.withLock { $0.removed } }
    var errors: [String] { state.withLock { $0.errors } }
  }

  /// Has half of the threads name their shares of `count` objects and the others collect meanwhile.
  private func race(
    _ count: Int, _ record: Record, name: @escaping @Sendable (_ number: Int, Catalog) throws -> Void,
    collect: @escaping @Sendable (Catalog) throws -> Void
  ) async {
    let group = DispatchGroup()
    for thread in 0..<Self.threads {
      group.enter()
      Thread.detachNewThread { [nodes] in
        let node = nodes[thread / 2 % nodes.count]
        do {
          if thread % 2 == 0 {
            defer { record.endNaming() }
            for number in 0..<count where number % (Self.threads / 2) == thread / 2 { try name(number, node) }
          } else {
            repeat { try collect(node) } while record.isNaming
          }
        } catch {
          record.note(error)
        }
        group.leave()
      }
    }
    await withCheckedContinuation { continuation in group.notify(queue: .global()) { continuation.resume() } }
    #expect(record.errors == [])
    #expect(!record.named.isEmpty)
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
    await race(recordings.count, record) { number, node in
      do { try node.insert(recordings[number]) } catch StorageError.objectMayBeGone { return }
      record.note(named: "\(ObjectKey(recordings[number].id, "audio.wav"))")
    } collect: { node in
      let due = try node.takeGarbage(limit: 7)
      for garbage in due {
        guard case .object(let key) = garbage else { continue }
        if try !node.namedObjects(of: key.recording).contains(key) { record.note(removed: "\(key)") }
      }
      try node.forget(due)
    }
    #expect(record.named.intersection(record.removed) == [])
  }

  @Test("an object of an upload that counts isn't removed, and none is forgotten, whenever the upload ends")
  func uploads() async throws {
    let record = Record()
    let never = Timestamp(milliseconds: 4_000_000_000_000)
    let objects = try (0..<80).map { _ in
      let upload = Upload(length: 9, expiresAt: never)
      try nodes[0].insert(upload, limits: UploadLimits(total: 99, perClient: 99))
      return UploadObject(of: upload.id, start: 0, bytes: 4)
    }
    for part in [objects.prefix(40), objects.suffix(40)] { try nodes[0].announce(Array(part)) }
    await race(objects.count, record) { number, node in
      let object = objects[number]
      do { try node.advance(object.upload, to: 4, expiresAt: never, adding: [object]) } catch {
        guard case StorageError.objectMayBeGone = error else { throw error }
        return
      }
      // Every third upload ends at once, and its object goes.
      if number % 3 == 0 { try node.deleteUpload(object.upload) } else { record.note(named: object.key) }
    } collect: { node in
      let due = try node.takeUploadObjects(limit: 7)
      for object in due where try !node.objects(of: object.upload).map(\.key).contains(object.key) {
        record.note(removed: object.key)
      }
      try node.forget(due)
    }
    #expect(record.named.intersection(record.removed) == [])
    for object in objects {
      let isNamed = try nodes[0].objects(of: object.upload) == [object]
      let isUnneeded = try nodes[0].unneededObjects(of: object.upload).map(\.key) == [object.key]
      #expect(isNamed == record.named.contains(object.key))
      #expect(isNamed || isUnneeded || record.removed.contains(object.key), "nobody would remove it")
    }
  }
}
