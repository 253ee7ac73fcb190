import Foundation
import PresentRows
import Terms
import Testing

@testable import Storage

/// What every store of media must do, by the protocols alone.
@Suite struct BlobsTests {
  let folder: TemporaryFolder
  let blobs: any Blobs
  let scratch: any Scratch

  init() throws {
    folder = try TemporaryFolder()
    let store = try MediaStore(directory: folder("data"))
    (blobs, scratch) = (store, store)
  }

  /// Puts an object as a job does.
  private func put(_ text: String, as key: ObjectKey, makesFolder: Bool = true) throws -> StoredFile {
    let path = try scratch.makeWorkFolder(of: JobID()) + "/output"
    try scratch.write(Array(text.utf8), toWorkFile: path)
    return try blobs.put(path, as: key, makesFolder: makesFolder)
  }

  @Test("an object is found under its key")
  func finding() throws {
    let key = ObjectKey(RecordingID(), "waveform-1.pyramid")
    let stored = try put("0123456789", as: key)
    #expect(stored.key == key && stored.bytes == 10)
    #expect(blobs.look(at: key) == .present(bytes: 10))
    #expect(try blobs.localFile(key).withPath(read) == "0123456789")
    #expect(try blobs.fileAtHand(key)?.withPath(read) == "0123456789")
    #expect(try blobs.localFile(key).path == blobs.localFile(key).path)
  }

  @Test("what holds a local file is released with it, but not before its path has been used")
  func holding() {
    final class Hold: Sendable {}
    weak var hold: Hold?
    func file() -> LocalFile {
      let new = Hold()
      hold = new
      return LocalFile(path: "/a", holding: new)
    }
    let isHeld = file().withPath { $0 == "/a" && hold != nil }
    #expect(isHeld && hold == nil)
  }

  @Test("without an object, its file doesn't exist")
  func missing() throws {
    let key = ObjectKey(RecordingID(), "audio.wav")
    #expect(blobs.look(at: key) == .absent)
    #expect(try !FileManager.default.fileExists(atPath: blobs.localFile(key).path))
    blobs.delete(key)
    blobs.offer(folder("nothing"), as: key)
    #expect(blobs.look(at: key) == .absent)
  }

  @Test("a deleted recording isn't begun again by a job, unless the job makes the recording")
  func deletedMeanwhile() throws {
    let key = ObjectKey(RecordingID(), "converted-1.mp3")
    _ = try put("sound", as: ObjectKey(key.recording, "audio-1.wav"))
    try blobs.remove(key.recording)
    #expect(throws: StorageError.self) { try put("text", as: key, makesFolder: false) }
    #expect(blobs.look(at: key) == .absent)
    _ = try put("text", as: key)
    #expect(blobs.look(at: key) == .present(bytes: 4))
  }

  @Test("a recording's objects go one by one, except its audio, or all together")
  func deletion() throws {
    let id = RecordingID()
    let (audio, waveform) = (ObjectKey(id, "audio.wav"), ObjectKey(id, "waveform-1.pyramid"))
    for key in [audio, waveform] { _ = try put("text", as: key) }
    let other = ObjectKey(RecordingID(), waveform.name)
    _ = try put("other", as: other)
    blobs.delete(waveform)
    blobs.delete(audio)
    #expect(blobs.look(at: waveform) == .absent && blobs.look(at: audio) == .present(bytes: 4))
    try blobs.remove(id)
    #expect(blobs.look(at: audio) == .absent && blobs.look(at: other) == .present(bytes: 5))
  }

  @Test("the sound of a recording is its audio, or the working copy of audio that isn't read directly")
  func sound() {
    var recording = Recording(
      name: "a", format: SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 8000, channels: 1, frames: 1))
    #expect(recording.soundKey == nil)
    recording.audioKey = ObjectKey(recording.id, "audio.wav")
    recording.workingKey = ObjectKey(recording.id, "working.wav")
    #expect(recording.soundKey == recording.audioKey)
    recording.media = "{}"
    #expect(recording.soundKey == recording.workingKey)
  }

  @Test("a key is read as it was written, and never leads outside of a recording")
  func keys() {
    let id = RecordingID()
    let key = ObjectKey(id, "waveform-1.pyramid")
    #expect("\(key)" == "recordings/\(id)/waveform-1.pyramid" && ObjectKey("\(key)") == key)
    for text in [
      "", "/", "recordings", "recordings/\(id)", "recordings/\(id)/", "recordings/\(id)/..", "recordings/\(id)/../a",
      "recordings/\(id)/a/b", "recordings/../\(id)", "/recordings/\(id)/a", "jobs/\(id)/a", "recordings/x/a",
      "recordings/\(id)/.a", "recordings/\(id)/a\0b",
    ] {
      #expect(ObjectKey(text) == nil, "\(text)")
    }
  }

  @Test("a data folder of an earlier version has each object at the path of its key")
  func earlierDataFolder() throws {
    // The layout since version 1: DATA/recordings/<id>/<the name in the row>.
    let id = RecordingID()
    try FileSystem.makeFolders(folder("old/recordings/\(id.text)"))
    let names = ["audio.mp3", "waveform.pyramid", "working.wav", "converted-0190.mp3"]
    for name in names { try write(name, to: folder("old/recordings/\(id.text)/\(name)")) }
    let blobs: any Blobs = try MediaStore(directory: folder("old"))
    for name in names {
      let key = ObjectKey(id, name)
      #expect(try blobs.localFile(key).path == folder("old/\(key)"))
      #expect(try blobs.localFile(key).withPath(read) == name)
    }
  }
}
