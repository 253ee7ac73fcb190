import AudioIO
import Workers

/// How long a file is expected to be while it's being read.
struct ExpectedLength: Sendable {
  /// The header's length, if the codec makes it reliable.
  let total: Int64?
  /// An estimate otherwise.
  let estimate: Int64?

  init(_ reader: borrowing AudioReader, path: String) {
    if reader.format.codec.hasReliableFrameCount, let frames = reader.claimedFrames {
      (total, estimate) = (frames, nil)
    } else {
      (total, estimate) = (nil, reader.claimedFrames ?? reader.format.estimatedFrames(inFileAt: path))
    }
  }

  /// The fraction of frames read. Stays below 1 until the end is reached, even if the estimate is wrong.
  func fraction(read: Int64) -> Double {
    let expected = Double(max(total ?? estimate ?? 1, 1))
    return min(Double(read) / expected, 0.999)
  }

  func progress(read: Int64, ready: Int64) -> WorkerProgress {
    WorkerProgress(
      fraction: fraction(read: read), readyFrames: ready, totalFrames: total,
      estimatedFrames: total == nil ? max(estimate ?? 0, read) : nil)
  }

  func finished(frames: Int64) -> WorkerProgress {
    WorkerProgress(fraction: 1, readyFrames: frames, totalFrames: frames, estimatedFrames: nil)
  }
}
