import AudioIO

/// How long a file is thought to be while it is read.
struct ExpectedLength: Sendable {
  /// Where the codec makes the header's count dependable.
  let total: Int64?
  /// Where it doesn't.
  let estimate: Int64?

  init(_ reader: borrowing AudioReader, path: String) {
    if reader.format.codec.hasReliableFrameCount, let frames = reader.claimedFrames {
      (total, estimate) = (frames, nil)
    } else {
      (total, estimate) = (nil, reader.claimedFrames ?? reader.format.estimatedFrames(inFileAt: path))
    }
  }

  /// The fraction never reaches 1 before the end is seen, however wrong the estimate was.
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
