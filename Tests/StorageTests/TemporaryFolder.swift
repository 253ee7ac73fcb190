import Foundation
import PresentRows
import Terms

@testable import Storage

/// A folder for one test, removed with the last reference.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "stillwave-storage-" + RecordingID().text
    try FileSystem.makeFolders(path)
  }

  deinit {
    try? FileSystem.remove(path)
  }

  func callAsFunction(_ name: String) -> String { path + "/" + name }

  /// Returns the paths of all files in the folder and of its empty folders, sorted.
  func contents(of folder: String = "") throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: path + "/" + folder).sorted()
  }
}

func write(_ text: String, to path: String) throws {
  try FileDescriptor(path: path, flags: O_WRONLY | O_CREAT | O_TRUNC).write(Array(text.utf8).span)
}

func read(_ path: String) throws -> String {
  String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
}

func sample(_ name: String = "talk.wav", job: JobID? = nil) -> Recording {
  Recording(
    name: name, createdAt: Timestamp(milliseconds: 1_795_233_906_789),
    format: SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 44_100, channels: 2, estimatedFrames: 9),
    waveformJob: job)
}
