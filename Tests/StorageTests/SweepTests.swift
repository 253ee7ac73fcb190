import Glibc
import Testing

@testable import Storage

@Suite struct SweepTests {
  let folder: TemporaryFolder
  let store: MediaStore

  init() throws {
    folder = try TemporaryFolder()
    store = try MediaStore(directory: folder.path)
  }

  @Test("a sweep removes exactly what no row owns")
  func exactness() throws {
    let (owned, unowned) = (RecordingID(), RecordingID())
    let (running, finished) = (JobID(), JobID())
    for id in [owned, unowned] { try write("abc", to: store.makeFolder(of: id) + "/audio.wav") }
    for id in [running, finished] { try write("abc", to: store.makeWorkFolder(of: id) + "/part") }
    try write("half", to: folder("incoming/\(RecordingID().text).part"))
    let halfRemoved = folder("removed/\(RecordingID().text)")
    try FileSystem.makeFolders(halfRemoved)
    try write("rest", to: halfRemoved + "/audio.wav")

    let report = store.sweep(recordings: { $0 == owned }, jobs: { $0 == running })

    #expect(report == SweepReport(incoming: 1, recordings: 2, jobs: 1, failures: []))
    #expect(
      try folder.contents() == [
        "incoming", "jobs", "jobs/\(running)", "jobs/\(running)/part", "recordings", "recordings/\(owned)",
        "recordings/\(owned)/audio.wav", "removed", "uploads",
      ])
  }

  @Test("a sweep keeps a work folder for as long as another process works in it")
  func heldFolder() throws {
    let path = try store.makeWorkFolder(of: JobID())
    func hold() throws {
      let holder = try FileDescriptor(path: path, flags: O_RDONLY | O_DIRECTORY)
      #expect(try holder.lock())
      #expect(store.sweep(recordings: { _ in true }, jobs: { _ in false }) == SweepReport())
      #expect(FileSystem.isFolder(path))
    }
    try hold()
    #expect(store.sweep(recordings: { _ in true }, jobs: { _ in false }).jobs == 1)
    #expect(!FileSystem.isFolder(path))
  }

  @Test("a sweep keeps what the store did not make")
  func strangers() throws {
    let names = ["incoming/notes.txt", "incoming/x.part", "recordings/holiday", "jobs/.keep", "removed/me", "catalog"]
    for name in names { try write("mine", to: folder(name)) }
    #expect(store.sweep(recordings: { _ in false }, jobs: { _ in false }) == SweepReport())
    for name in names { #expect(try read(folder(name)) == "mine") }
  }

  @Test("a sweep that can't read a folder says so and goes on")
  func failure() throws {
    try write("half", to: folder("incoming/\(RecordingID().text).part"))
    try FileSystem.remove(folder("jobs"))
    let report = store.sweep(recordings: { _ in true }, jobs: { _ in true })
    #expect(report.incoming == 1)
    #expect(report.failures == [.io(operation: "opendir", path: folder("jobs"), errno: ENOENT)])
  }
}
