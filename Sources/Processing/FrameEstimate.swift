import AudioIO
import Glibc

extension AudioFormat {
  /// Estimates the number of frames in a compressed file from its size alone, at 64 kbit/s per channel, the middle of
  /// the usual rates for speech and music. A picture needs a width before the end is known.
  func estimatedFrames(inFileAt path: String) -> Int64 {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return 1 }
    let seconds = Double(status.st_size) * 8 / (64_000 * Double(channels))
    return max(Int64(seconds * Double(sampleRate)), 1)
  }
}
