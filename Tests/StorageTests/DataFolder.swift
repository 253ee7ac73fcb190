import Foundation
import PresentRows
import Terms
import Testing

@testable import Storage

/// A data directory with a few recordings, as left by a service; for tests.
struct DataFolder {
  let folder: TemporaryFolder
  let store: MediaStore
  let recordings: [Recording]

  var path: String { store.directory }

  /// Creates the directory and closes its catalog.
  init(_ count: Int = 3) throws {
    folder = try TemporaryFolder()
    store = try MediaStore(directory: folder("data"))
    let catalog = try Catalog(path: store.catalogPath)
    catalog.keepDescriptions(in: store.descriptions) { Issue.record($1, "\($0)") }
    var recordings: [Recording] = []
    for number in 0..<count {
      let id = RecordingID()
      let file = try store.receive()
      try file.append(Array("sound \(number)".utf8).span)
      let stored = try store.objects.adopt(file, as: id, name: "audio.wav")
      let recording = Recording(
        id: id, name: "talk \(number).wav", bytes: stored.bytes, sha256: stored.sha256,
        format: SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 44_100, channels: 2, frames: 9),
        waveformState: .failed, audioKey: stored.key)
      try catalog.insert(recording)
      recordings.append(recording)
    }
    try catalog.close()
    self.recordings = recordings
  }

  /// Changes the catalog without the service's knowledge.
  func execute(_ sql: String) throws {
    try SQLiteConnection(store.catalogPath).execute(sql)
  }

  func check() throws -> DataCheck.Report {
    try DataCheck { _ in nil }.run(in: MediaStore(lookingAt: path))
  }

  @discardableResult
  func repair() throws -> DataRepair.Outcome { try DataRepair(store, pyramidFault: { _ in nil }).run() }

  func forgetDescriptions() throws {
    for recording in recordings { try FileSystem.remove(store.path(of: recording.descriptionKey)) }
  }

  /// Returns each path with its mode, time, and content.
  func everything() throws -> [String: String] {
    var found: [String: String] = [:]
    for name in try folder.contents() + [""] {
      var info = stat()
      #expect(unsafe lstat(folder(name), &info) == 0)
      // Foundation leaks memory for empty files.
      let hasBytes = info.st_mode & S_IFMT == S_IFREG && info.st_size > 0
      let bytes = hasBytes ? try Data(contentsOf: URL(fileURLWithPath: folder(name))).base64EncodedString() : ""
      found[name] = "\(info.st_mode) \(info.st_mtim.tv_sec).\(info.st_mtim.tv_nsec) \(bytes)"
    }
    return found
  }
}
