import Dispatch
import PresentRows
import Synchronization
import Testing

@testable import AudioService
@testable import Storage

/// A folder with recordings that fails like a store on another machine, as tests say.
final class FailingBlobs: Blobs {
  private let store: MediaStore
  /// What fetching a file throws, and of which recording; nil for all.
  let fetching = Mutex<(error: StorageError, recording: RecordingID?)?>(nil)
  /// How often fetching throws.
  let fetchFailures = Mutex(Int.max)
  /// What putting a file throws.
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
  /// How often something was put.
  let puts = Counter()

  init(_ store: MediaStore) { self.store = store }

  /// What fetching an object throws; nil if it works. Damage is that of the object that the error names.
  private func fault(of key: ObjectKey) -> StorageError? {
    guard let fault = fetching.withLock({ $0 }), fault.recording ?? key.recording == key.recording else { return nil }
    if case .damagedObject(let damaged) = fault.error, damaged != key.description { return nil }
    return fault.error
  }

  func localFile(_ key: ObjectKey) throws(StorageError) -> LocalFile {
    guard let error = fault(of: key) else { return store.localFile(key) }
    if Self.isDue(fetchFailures) { throw error }
    return store.localFile(key)
  }

  private static func isDue(_ failures: borrowing Mutex<Int>) -> Bool {
    failures.withLock { left in
      left -= 1
      return left >= 0
    }
  }

  func put(_ path: String, as key: ObjectKey, makesFolder: Bool) throws(StorageError) -> StoredFile {
    puts.add(1)
    gate.withLock { $0 }?.wait()
    if let error = putting.withLock({ $0 }), Self.isDue(putFailures) { throw error }
    return try store.put(path, as: key, makesFolder: makesFolder)
  }

  func offer(_ path: String, as key: ObjectKey) -> Int64? { store.offer(path, as: key) }
  func adopt(
    _ file: consuming IncomingFile, as id: RecordingID, name: String, with made: [MadeFile]
  ) throws(StorageError) -> StoredFile { try store.adopt(file, as: id, name: name, with: made) }
  func adopt(_ part: UploadPart, as id: RecordingID, name: String) throws(StorageError) -> StoredFile {
    if let action = adopting.withLock({ $0 }) { try action() }
    return try store.adopt(part, as: id, name: name)
  }
  func fileAtHand(_ key: ObjectKey) -> LocalFile? { nil }
  func storedSHA256(
    of key: ObjectKey, _ goesOn: (Int) throws(StorageError) -> Bool
  ) throws(StorageError) -> String? {
    try localFile(key).sha256(fromDisk: true, goesOn)
  }
  func discardCopy(of key: ObjectKey) -> Bool {
    discarded.withLock { $0.append(key) }
    return false
  }
  func read(_ key: ObjectKey, _ ranges: [Range<Int64>]) throws(StorageError) -> [[UInt8]]? {
    if let error = fault(of: key) { throw error }
    return try store.read(key, ranges)
  }
  func fetch(_ key: ObjectKey, _ ranges: [Range<Int64>]) throws(StorageError) { _ = try read(key, ranges) }
  func isAtHand(_ key: ObjectKey, _ ranges: [Range<Int64>]) -> Bool { atHand.withLock { $0 } }
  func look(at key: ObjectKey) -> FileLook { fetching.withLock { $0 } == nil ? store.look(at: key) : .unknown }
  func delete(_ key: ObjectKey) { store.delete(key) }
  func deleteDiscarded(_ keys: [ObjectKey]) { store.deleteDiscarded(keys) }
  func removeResults(of token: AttemptToken, in id: RecordingID) { store.removeResults(of: token, in: id) }
  func removeGarbage(of catalog: Catalog) throws(StorageError) { try store.removeGarbage(of: catalog) }
  func remove(_ id: RecordingID) throws(StorageError) { try store.remove(id) }
  func discard(_ id: RecordingID) throws(StorageError) { try store.discard(id) }
  func checkReachable() throws(StorageError) {}
  func makingRoom<Result>(_ deletion: () throws(StorageError) -> Result) throws(StorageError) -> Result {
    try deletion()
  }
}

extension TestBench {
  /// A bench whose store of media fails as tests say, and that store.
  static func failingStore(
    holder: LeaseHolder = LeaseHolder(), _ change: (inout Configuration) -> Void = { _ in }
  ) throws -> (TestBench, FailingBlobs) {
    var made: FailingBlobs?
    let bench = try TestBench(
      holder: holder, change,
      blobs: {
        let blobs = FailingBlobs($0)
        made = blobs
        return blobs
      })
    return (bench, try #require(made))
  }
}
