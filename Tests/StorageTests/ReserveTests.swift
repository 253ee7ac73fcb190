import Glibc
import PresentRows
import Testing

@testable import Storage

/// The room that a data folder keeps for deletions on a full disk.
@Suite struct ReserveTests {
  private let folder: TemporaryFolder
  private let store: MediaStore

  init() throws {
    folder = try TemporaryFolder()
    store = try MediaStore(directory: folder("data"))
  }

  @Test("on a full disk, the reserve's room is given up for a deletion and taken again after the removal")
  func reserve() throws {
    let path = store.directory + "/reserve"
    store.keepReserve()
    #expect(try FileSystem.length(of: path) == MediaStore.reserveBytes)
    var tries = 0
    try store.makingRoom { () throws(StorageError) in
      tries += 1
      if FileSystem.identity(of: path) != nil { throw .diskFull }
    }
    #expect(tries == 2)
    let id = RecordingID()
    try store.makeFolder(of: id)
    try store.remove(id)
    #expect(try FileSystem.length(of: path) == MediaStore.reserveBytes)
    #expect(throws: StorageError.diskFull) { try store.makingRoom { () throws(StorageError) in throw .diskFull } }
  }

  @Test("a reserve that is only a hole in a file is filled")
  func sparseReserve() throws {
    let path = store.directory + "/reserve"
    try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT).truncate(to: MediaStore.reserveBytes)
    store.keepReserve()
    #expect(FileSystem.allocatedBytes(of: path) >= MediaStore.reserveBytes)
  }

  @Test("the reserve isn't taken back while a deletion needs its room")
  func reserveInUse() throws {
    store.keepReserve()
    var tries = 0
    try store.makingRoom { () throws(StorageError) in
      tries += 1
      if tries == 1 { throw .diskFull }
      store.keepReserve()
      #expect(FileSystem.identity(of: store.directory + "/reserve") == nil)
    }
  }

  @Test("a folder that machines share has no reserve")
  func reserveOfSharedMedia() throws {
    let shared = try MediaStore(shared: folder("shared"), node: "a")
    shared.keepReserve()
    #expect(FileSystem.identity(of: shared.directory + "/reserve") == nil)
    #expect(throws: StorageError.diskFull) { try shared.makingRoom { () throws(StorageError) in throw .diskFull } }
  }
}
