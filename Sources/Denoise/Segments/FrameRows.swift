/// What the tasks on blocks and segments share, in rings.
final class FrameRows: Sendable {
  /// γ of each frame, relative to the noise at the time.
  let posterior: RowRing
  /// γ relative to the profile: the same rows unless the noise is tracked.
  let measured: RowRing
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
    posterior = RowRing(width: frame.binCount, count: count)
    measured = isTracked ? RowRing(width: frame.binCount, count: count) : posterior
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

  init(frame: AnalysisFrame) {
    transform = PairTransform(length: frame.length)
    scratch = RowRing(width: frame.binCount, count: 2)
  }
}
