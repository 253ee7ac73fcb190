import Synchronization

@testable import Storage

/// A disk for files in progress that fails as tests say, and counts how often its free space is looked at.
final class TestDisk: Scratch {
  private let store: MediaStore
  let looks = Atomic(0)
  /// How many bytes are free; nil for those of the real disk.
  let free = Mutex<Int64?>(nil)
  /// What a check of the disk throws.
  let check = Mutex<StorageError?>(nil)
  /// What making a job's folder throws, and how often.
  let making = Mutex<(error: StorageError, count: Int)?>(nil)

  init(_ store: MediaStore) { self.store = store }

  func freeBytes() throws(StorageError) -> Int64 {
    looks.add(1, ordering: .relaxed)
    if let bytes = free.withLock({ $0 }) { return bytes }
    return try store.freeBytes()
  }

  func checkReceiving() throws(StorageError) {
    if let error = check.withLock({ $0 }) { throw error }
    try store.checkReceiving()
  }

  func makeWorkFolder(of id: JobID) throws(StorageError) -> String {
    let error = making.withLock { making -> StorageError? in
      guard let (error, count) = making, count > 0 else { return nil }
      making = (error, count - 1)
      return error
    }
    if let error { throw error }
    return try store.makeWorkFolder(of: id)
  }

  func receive() throws(StorageError) -> IncomingFile { try store.receive() }
  func takeIntakeFolder() throws(StorageError) -> String { try store.takeIntakeFolder() }
  func giveBack(intakeFolder path: String) { store.giveBack(intakeFolder: path) }
  func removeIntakeFolders() { store.removeIntakeFolders() }

  func write(_ bytes: [UInt8], toWorkFile path: String) throws(StorageError) {
    try store.write(bytes, toWorkFile: path)
  }

  func contents(ofWorkFile path: String, limit: Int64) throws(StorageError) -> [UInt8]? {
    try store.contents(ofWorkFile: path, limit: limit)
  }

  func removeWork(of token: AttemptToken) { store.removeWork(of: token) }
  func removeWorkFolder(of id: JobID) { store.removeWorkFolder(of: id) }
}
