import AudioIO
import Glibc

extension AudioFormat {
  /// A guess at the number of frames of a compressed file from its size alone, at 64 kbit/s a channel, the middle of
  /// what voices and music are coded with: for a picture that has to have a width before the end is known.
  func estimatedFrames(inFileAt path: String) -> Int64 {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return 1 }
    let seconds = Double(status.st_size) * 8 / (64_000 * Double(channels))
    return max(Int64(seconds * Double(sampleRate)), 1)
  }
}
