import Synchronization

@testable import Storage

/// A disk for files in progress that fails as tests say, and counts how often its free space is looked at.
final class TestDisk: Sendable {
  let looks = Atomic(0)
  /// How many bytes are free; nil for those of the real disk.
  let free = Mutex<Int64?>(nil)
  /// What a check of the disk throws.
  let check = Mutex<StorageError?>(nil)
  /// What making a job's folder throws, and how often.
  let making = Mutex<(error: StorageError, count: Int)?>(nil)

  func scratch(_ disk: MediaStore) -> Scratch {
    Scratch(
      disk,
      freeBytes: { [self] disk throws(StorageError) in
        looks.add(1, ordering: .relaxed)
        if let bytes = free.withLock({ $0 }) { return bytes }
        return try disk.freeBytes()
      },
      checkReceiving: { [self] disk throws(StorageError) in
        if let error = check.withLock({ $0 }) { throw error }
        try disk.checkReceiving()
      },
      makeWorkFolder: { [self] disk, id throws(StorageError) in
        let error = making.withLock { making -> StorageError? in
          guard let (error, count) = making, count > 0 else { return nil }
          making = (error, count - 1)
          return error
        }
        if let error { throw error }
        return try disk.makeWorkFolder(of: id)
      })
  }
}
