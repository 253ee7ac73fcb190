import Synchronization

@testable import Storage

/// A disk for files in progress that fails as tests say, and counts how often its free space is looked at.
final class TestDisk: Scratch {
  let disk: MediaStore
  let looks = Atomic(0)
  /// How many bytes are free; nil for those of the real disk.
  let free = Mutex<Int64?>(nil)
  /// What a check of the disk throws.
  let check = Mutex<StorageError?>(nil)
  /// What making a job's folder throws, and how often.
  let making = Mutex<(error: StorageError, count: Int)?>(nil)

  init(_ disk: MediaStore) { self.disk = disk }

  func freeBytes() throws(StorageError) -> Int64 {
    looks.add(1, ordering: .relaxed)
    if let bytes = free.withLock({ $0 }) { return bytes }
    return try disk.freeBytes()
  }

  func checkReceiving() throws(StorageError) {
    if let error = check.withLock({ $0 }) { throw error }
    try disk.checkReceiving()
  }

  func makeWorkFolder(of id: JobID) throws(StorageError) -> String {
    let error = making.withLock { making -> StorageError? in
      guard let (error, count) = making, count > 0 else { return nil }
      making = (error, count - 1)
      return error
    }
    if let error { throw error }
    return try disk.makeWorkFolder(of: id)
  }
}
