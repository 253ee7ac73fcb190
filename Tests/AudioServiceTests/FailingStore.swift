import Dispatch
import PresentRows
import Synchronization
import Testing

@testable import AudioService
@testable import Storage

/// A folder with recordings that fails like a store on another machine, as tests say.
final class FailingStore: PassingStore {
  let store: any ObjectStore
  /// What fetching a file throws, and of which recording; nil for all.
  let fetching = Mutex<(error: StorageError, recording: RecordingID?)?>(nil)
  /// How often fetching throws.
  let fetchFailures = Mutex(Int.max)
  /// What putting a job's file throws.
  let putting = Mutex<StorageError?>(nil)
  /// How often putting throws.
  let putFailures = Mutex(Int.max)
  /// What putting waits for before it throws.
  let gate = Mutex<DispatchSemaphore?>(nil)
  /// What happens before the file of a resumable upload is adopted.
  let adopting = Mutex<(@Sendable () throws(StorageError) -> Void)?>(nil)
  /// The objects whose copy was discarded.
  let discarded = Mutex<[ObjectKey]>([])
  /// Whether all bytes can be read without another machine.
  let atHand = Mutex(false)
  /// How often a job's file was put.
  let puts = Counter()

  init(_ store: any ObjectStore) { self.store = store }

  /// What fetching an object throws; nil if it works. Damage is that of the object that the error names.
  private func fault(of key: ObjectKey) -> StorageError? {
    guard let fault = fetching.withLock({ $0 }), fault.recording ?? key.recording == key.recording else { return nil }
    if case .damagedObject(let damaged) = fault.error, damaged != key.description { return nil }
    return fault.error
  }

  func localFile(_ key: ObjectKey) throws(StorageError) -> LocalFile {
    if let error = fault(of: key), Self.isDue(fetchFailures) { throw error }
    return try store.localFile(key)
  }

  private static func isDue(_ failures: borrowing Mutex<Int>) -> Bool {
    failures.withLock { left in
      left -= 1
      return left >= 0
    }
  }

  func put(_ objects: [NewObject], begins: Bool) throws(StorageError) -> [FoundObject?] {
    if objects.contains(where: \.keepsFile), let action = adopting.withLock({ $0 }) { try action() }
    if objects.contains(where: \.wantsSHA256) {
      puts.add(1)
      gate.withLock { $0 }?.wait()
      if let error = putting.withLock({ $0 }), Self.isDue(putFailures) { throw error }
    }
    return try store.put(objects, begins: begins)
  }

  func fileAtHand(_ key: ObjectKey) -> LocalFile? { nil }
  func sha256(
    of key: String, inPieces: Bool, _ goesOn: (Int) throws(StorageError) -> Bool
  ) throws(StorageError) -> String? {
    if let error = ObjectKey(key).flatMap(fault), Self.isDue(fetchFailures) { throw error }
    return try store.sha256(of: key, inPieces: inPieces, goesOn)
  }
  func discardCopy(of key: ObjectKey) -> Bool {
    discarded.withLock { $0.append(key) }
    return false
  }
  func read(_ key: ObjectKey, _ ranges: [Range<Int64>]) throws(StorageError) -> [[UInt8]]? {
    if let error = fault(of: key) { throw error }
    return try store.read(key, ranges)
  }
  func isAtHand(_ key: ObjectKey, _ ranges: [Range<Int64>]) -> Bool { atHand.withLock { $0 } }
  func look(_ key: String) throws(StorageError) -> FoundObject? {
    if let error = fetching.withLock({ $0?.error }) { throw error }
    return try store.look(key)
  }
}

extension TestBench {
  /// A bench whose store of media fails as tests say, and that store.
  static func failingStore(
    holder: LeaseHolder = LeaseHolder(), _ change: (inout Configuration) -> Void = { _ in }
  ) throws -> (TestBench, FailingStore) {
    var made: FailingStore?
    let bench = try TestBench(
      holder: holder, change,
      objects: {
        let store = FailingStore($0)
        made = store
        return store
      })
    return (bench, try #require(made))
  }
}
