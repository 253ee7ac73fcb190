import Foundation
import PresentRows
import Terms

@testable import Storage

typealias TemporaryFolder = PresentRows.TemporaryFolder

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
