/// γ of each frame, relative to the noise at the time. Frames in which it is as in the profile aren't copied.
struct PosteriorRows: Sendable {
  /// γ relative to the profile.
  let measured: RowRing
  /// γ relative to the noise at the time, and 1 for each frame in which that has changed; nil if it isn't tracked.
  private let tracked: (rows: RowRing, hasChanged: RowRing)?

  init(width: Int, count: Int, isTracked: Bool) {
    measured = RowRing(width: width, count: count)
    tracked = isTracked ? (RowRing(width: width, count: count), RowRing(width: 1, count: count)) : nil
  }

  /// Returns the address of a frame's γ. If the noise is tracked, `keep` or `change` must have been called before.
  @unsafe
  subscript(frame: Int64) -> Row {
    guard let tracked, unsafe tracked.hasChanged[frame][0] != 0 else { return unsafe measured[frame] }
    return unsafe tracked.rows[frame]
  }

  /// Notes that the noise in a tracked frame is as in the profile.
  func keep(_ frame: Int64) {
    if let tracked { unsafe tracked.hasChanged[frame][0] = 0 }
  }

  /// Notes that the noise in a tracked frame has changed, and returns the address for its γ.
  @unsafe
  func change(_ frame: Int64) -> Row {
    guard let tracked else { preconditionFailure("the noise isn't tracked") }
    unsafe tracked.hasChanged[frame][0] = 1
    return unsafe tracked.rows[frame]
  }
}

/// What the tasks on blocks and segments share, in rings.
final class FrameRows: Sendable {
  /// γ of each frame, relative to the noise at the time.
  let posterior: PosteriorRows
  /// The cepstrum of each frame, followed by the quefrency at which a voice has its peak, or 0. Unused if the method
  /// needs no cepstra.
  let cepstra: RowRing
  private let spectra: RowRing
  private let spectrumWidth: Int
  /// Where an onset is in each frame; see Onset.
  let onsets: RowRing
  /// G of each frame of the segment in progress, and of one of the four before it.
  let gains: RowRing
  /// f of each frame of the segment in progress, then log2 ξc.
  let logs: RowRing

  /// Makes room for the analysis of `count` frames in a row and for a segment.
  init(frame: AnalysisFrame, channels: Int, count: Int, segmentHops: Int, isTracked: Bool = false) {
    posterior = PosteriorRows(width: frame.binCount, count: count, isTracked: isTracked)
    cepstra = RowRing(width: frame.binCount + 1, count: count)
    spectrumWidth = (2 * frame.length + 1 + 15) / 16 * 16
    spectra = RowRing(width: channels * spectrumWidth, count: count / 2 + 1)
    onsets = RowRing(width: 1, count: count)
    gains = RowRing(width: frame.binCount, count: segmentHops + 4)
    logs = RowRing(width: frame.binCount, count: segmentHops + 4)
  }

  /// Returns the address of a channel's spectrum of frames 2 p and 2 p + 1 for pair p: 2 N numbers, real and imaginary
  /// parts in turn, followed by 0, plus 1 if the first frame isn't silent, plus 2 if the second isn't.
  @unsafe
  func spectrum(ofPair pair: Int64, channel: Int) -> Row { unsafe spectra[pair] + channel * spectrumWidth }
}

/// A thread's transform and scratch space.
final class Workspace: @unchecked Sendable {  // only its thread uses it
  let transform: PairTransform
  /// Two rows for anything.
  let scratch: RowRing
  /// A row for `band_sums`.
  let sums: RowRing

  init(frame: AnalysisFrame) {
    transform = PairTransform(length: frame.length)
    scratch = RowRing(width: frame.binCount, count: 2)
    sums = RowRing(width: frame.binCount + HissGate.width - 1, count: 1)
  }
}
