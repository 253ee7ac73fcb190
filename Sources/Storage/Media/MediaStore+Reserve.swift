// Deleting needs room before it makes some: the catalog writes that a row is gone before its files go. So that a disk
// that anyone has filled to the last byte can be emptied again, a file of the data folder holds some room, which is
// given up for deletions, and to write that a job has failed, and taken again afterwards. It guarantees nothing on file
// systems that never write in place (Btrfs, ZFS), nor to another program that writes in the same moment.

import Glibc

extension MediaStore {
  /// Enough for what a deletion changes in the catalog, unless it has very many labels, which are overwritten.
  static let reserveBytes: Int64 = 1 << 20

  private var reservePath: String { directory + "/reserve" }

  /// Takes the room that deletions may need, unless it's taken, being used, or the disk is too full. Does nothing in a
  /// folder that machines share, which has no catalog.
  package func keepReserve() {
    guard node == nil, reserveUsers.load(ordering: .sequentiallyConsistent) == 0 else { return }
    FileSystem.makePrivate(reservePath)
    guard FileSystem.allocatedBytes(of: reservePath) < Self.reserveBytes else { return }
    do throws(StorageError) {
      try FileDescriptor(path: reservePath, flags: O_WRONLY | O_CREAT).allocate(Self.reserveBytes)
    } catch {
      // Part of it would be of no use, and it is tried again regularly.
      try? FileSystem.remove(reservePath)
    }
  }

  /// Runs `deletion`, which deletes rows whose objects will be removed. Throws without running it if objects can't be
  /// removed: the rows would be gone, and the objects would stay. It may run twice.
  package func makingRoom<Result>(
    _ deletion: () throws(StorageError) -> Result
  ) throws(StorageError) -> Result {
    try checkRemoving()
    do throws(StorageError) { return try deletion() } catch .diskFull where node == nil {
      reserveUsers.wrappingAdd(1, ordering: .sequentiallyConsistent)
      defer { reserveUsers.wrappingSubtract(1, ordering: .sequentiallyConsistent) }
      // It changed nothing. Of several at once, one finds the file gone, and has its room too.
      try FileSystem.remove(reservePath)
      return try deletion()
    }
  }

  /// Throws if recordings' files can't be removed. Costs two system calls and writes nothing.
  func checkRemoving() throws(StorageError) {
    for folder in [recordings, removed] { try FileSystem.checkWritable(folder) }
  }
}
