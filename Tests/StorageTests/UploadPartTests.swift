import Glibc
import PresentRows
import Testing

@testable import Storage

@Suite struct UploadPartTests {
  let folder: TemporaryFolder
  let store: MediaStore
  let id = UploadID()

  init() throws {
    folder = try TemporaryFolder()
    store = try MediaStore(directory: folder.path)
  }

  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  private func digest(_ text: String) -> String {
    var hash = SHA256()
    hash.update(bytes(text).span)
    return hash.hexDigest()
  }

  @Test("a part grows, and is reopened with its contents")
  func growing() throws {
    let part = try store.makePart(of: id)
    try part.append(bytes("abc").span)
    try part.append(bytes("def").span)
    #expect(try part.digest() == digest("abcdef"))
    let again = try #require(try store.openPart(of: id))
    #expect(again.byteCount == 6)
    try again.append(bytes("ghi").span)
    #expect(try again.digest() == digest("abcdefghi"))
    try again.append(bytes("j").span)
    #expect(try again.digest() == digest("abcdefghij"))
  }

  @Test("bytes cut off a part are in neither its contents nor its digest", arguments: [0, 2, 6])
  func cutting(count: Int64) throws {
    let part = try store.makePart(of: id)
    try part.append(bytes("abcdef").span)
    try part.truncate(to: count)
    try part.append(bytes("XY").span)
    let rest = String("abcdef".prefix(Int(count))) + "XY"
    #expect(try part.digest() == digest(rest) && part.byteCount == count + 2)
    #expect(try read(part.path) == rest)
  }

  @Test("a failed write adds nothing")
  func refusedWrite() throws {
    // Every write to /dev/full fails with ENOSPC.
    unsafe symlink("/dev/full", folder("uploads/\(id).part"))
    let part = try #require(try store.openPart(of: id))
    #expect(throws: StorageError.diskFull) { try part.append(bytes("abc").span) }
    #expect(part.byteCount == 0)
    #expect(try part.digest() == digest(""))
    // The rest that the disk may have kept couldn't be truncated, so nothing must be appended to it.
    #expect(throws: StorageError.self) { try part.append(bytes("").span) }
    #expect(throws: StorageError.self) { try part.sync() }
  }

  @Test("a failed adoption leaves only the part")
  func failedAdoption() throws {
    let part = try store.makePart(of: id)
    try part.append(bytes("abc").span)
    try FileSystem.remove(part.path)
    let recording = RecordingID()
    #expect(throws: StorageError.self) { try store.objects.adopt(part, as: recording, name: "audio.wav") }
    #expect(!FileSystem.isFolder(store.folder(of: recording)))
  }
}
