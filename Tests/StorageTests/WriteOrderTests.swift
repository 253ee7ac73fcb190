import Glibc
import Testing

@testable import Storage

/// What a power cut may leave follows from the order of `fsync` and `rename`.
struct WriteOrderTests {
  let folder: TemporaryFolder
  let store: MediaStore

  init() throws {
    folder = try TemporaryFolder()
    store = try MediaStore(directory: folder("data"))
  }

  private func operations(_ body: () throws -> Void) throws -> [FileOperationLog.Operation] {
    let log = FileOperationLog()
    try FileOperationLog.$current.withValue(log) { try body() }
    return log.operations
  }

  @Test("an upload's folder and bytes are on the disk before it gets its name, and the name before it is adopted")
  func upload() throws {
    let file = try store.receive()
    try file.append([1, 2, 3].span)
    let (id, part) = (RecordingID(), file.path)
    let done = try operations { _ = try store.adopt(file, as: id, name: "audio.wav") }
    #expect(
      done == [
        .sync(store.recordings), .sync(part), .rename(part, to: store.folder(of: id) + "/audio.wav"),
        .sync(store.folder(of: id)),
      ])
  }

  @Test(
    "a job's result is on the disk before it gets its name, and the name before it is adopted",
    arguments: [true, false])
  func result(makesFolder: Bool) throws {
    let id = RecordingID()
    if !makesFolder { try store.makeFolder(of: id) }
    let source = try store.makeWorkFolder(of: JobID()) + "/out.flac"
    try write("abc", to: source)
    let done = try operations {
      _ = try store.adopt(path: source, as: id, name: "audio.flac", makesFolder: makesFolder)
    }
    #expect(
      done == (makesFolder ? [.sync(store.recordings)] : []) + [
        .sync(source), .rename(source, to: store.folder(of: id) + "/audio.flac"), .sync(store.folder(of: id)),
      ])
  }

  @Test("a resumable upload's bytes are on the disk before they get the recording's name")
  func part() throws {
    let upload = UploadID()
    let part = try store.makePart(of: upload)
    try part.append([1, 2, 3].span)
    let id = RecordingID()
    let done = try operations { _ = try store.adopt(part, as: id, name: "audio.wav") }
    #expect(
      done == [
        .sync(part.path), .sync(store.recordings), .link(part.path, to: store.folder(of: id) + "/audio.wav"),
        .sync(store.folder(of: id)),
      ])
  }

  @Test("a new upload's part has its name on the disk before it takes bytes")
  func newPart() throws {
    #expect(try operations { _ = try store.makePart(of: UploadID()) } == [.sync(store.uploads)])
  }

  @Test("a file is replaced by one that is whole on the disk")
  func replacement() throws {
    let path = folder("description")
    #expect(
      try operations { try FileSystem.replace(path, with: [1, 2]) } == [
        .sync(path + ".new"), .rename(path + ".new", to: path),
      ])
  }

  @Test("a copy is on the disk when it is made")
  func copy() throws {
    try write("abc", to: folder("old"))
    #expect(
      try operations { try FileSystem.copy(folder("old"), to: folder("new")) } == [.sync(folder("new"))])
  }

  @Test("the mark of the unfinished goes durably")
  func mark() throws {
    let id = RecordingID()
    try store.makeFolder(of: id)
    #expect(try operations { try store.removeMark(of: id) } == [.sync(store.folder(of: id))])
    #expect(try operations { try store.removeMark(of: id) }.isEmpty)
  }
}
