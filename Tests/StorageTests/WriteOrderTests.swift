import Glibc
import PresentRows
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
    let done = try operations { _ = try store.objects.adopt(file, as: id, name: "audio.wav") }
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
      _ = try store.objects.put(source, as: ObjectKey(id, "audio.flac"), begins: makesFolder)
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
    let done = try operations { _ = try store.objects.adopt(part, as: id, name: "audio.wav") }
    #expect(
      done == [
        .sync(store.recordings), .sync(part.path), .link(part.path, to: store.folder(of: id) + "/audio.wav"),
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

  @Test("files made from an upload are on the disk with it; one that isn't needed may be missing")
  func madeFiles() throws {
    let file = try store.receive()
    try file.append([1, 2, 3].span)
    let (id, part, work) = (RecordingID(), file.path, try store.takeIntakeFolder())
    try write("waveform", to: work + "/pyramid")
    let made = [
      MadeFile(path: work + "/pyramid", name: "waveform-1.pyramid", isNeeded: true),
      MadeFile(path: work + "/map", name: "audio.wav.map", isNeeded: false),
    ]
    let done = try operations { _ = try store.objects.adopt(file, as: id, name: "audio.wav", with: made) }
    let place = store.folder(of: id)
    #expect(
      done == [
        .sync(store.recordings), .sync(part), .rename(part, to: place + "/audio.wav"), .sync(work + "/pyramid"),
        .rename(work + "/pyramid", to: place + "/waveform-1.pyramid"), .sync(place),
      ])
  }

  @Test("the mark of the unfinished becomes the first description once that is on the disk")
  func firstDescription() throws {
    let id = RecordingID()
    try store.makeFolder(of: id)
    var recording = sample()
    recording = Recording(
      id: id, name: recording.name, bytes: 3, sha256: String(repeating: "0f", count: 32), format: recording.format,
      audioKey: ObjectKey(id, "audio.wav"))
    let (place, path) = (store.folder(of: id), store.path(of: recording.descriptionKey))
    #expect(
      try operations { try store.descriptions.describe(recording) } == [
        .sync(place + "/unfinished"), .rename(place + "/unfinished", to: path), .sync(place),
      ])
    #expect(try FileSystem.names(in: place) == [recording.descriptionKey.name])
    #expect(store.described(id) == recording)
    recording.name = "renamed"
    recording.version += 1
    let next = store.path(of: recording.descriptionKey)
    #expect(
      try operations { try store.descriptions.describe(recording) } == [
        .sync(next + ".new"), .rename(next + ".new", to: next), .sync(place),
      ])
    #expect(
      try FileSystem.names(in: place) == [recording.descriptionKey.name], "the one before goes once that is durable")
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
