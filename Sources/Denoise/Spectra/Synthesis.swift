/// Turns segments of spectra and gains back into sound.
struct Synthesis: Sendable {
  private let frame: AnalysisFrame
  private let channels: Int
  private let window: [Float]

  init(frame: AnalysisFrame, channels: Int) {
    self.frame = frame
    self.channels = channels
    window = frame.window(scale: frame.synthesisScale)
  }

  /// Adds up a segment's frames in order, starting from silence.
  /// - Parameters:
  ///   - segment: its frames.
  ///   - rows: their spectra and gains.
  ///   - sums: receives a row per channel of `segment.count + 3` hops. The last three overlap the next segment.
  func add(_ segment: Range<Int64>, _ rows: FrameRows, _ workspace: Workspace, into sums: RowRing) {
    for channel in 0..<channels {
      let sum = unsafe sums[Int64(channel)]
      unsafe sum.update(repeating: 0, count: (segment.count + 3) * frame.hop)
      for pair in (segment.lowerBound / 2)...((segment.upperBound - 1) / 2) {
        unsafe add(pair, of: segment, rows, channel, workspace.transform, to: sum)
      }
    }
  }

  /// Adds the frames of a pair that are in the segment.
  private func add(
    _ pair: Int64, of segment: Range<Int64>, _ rows: FrameRows, _ channel: Int, _ transform: PairTransform, to sum: Row
  ) {
    let spectrum = unsafe rows.spectrum(ofPair: pair, channel: channel)
    let sounding = unsafe Int(spectrum[2 * frame.length])
    guard sounding != 0 else { return }
    let own = ((2 * pair)..<(2 * pair + 2)).clamped(to: segment)
    unsafe loops.pair_gains(
      transform.input, spectrum, rows.gains[own.lowerBound], rows.gains[own.upperBound - 1], frame.binCount)
    transform.invert()
    for frame in own {
      let part = Int(frame - 2 * pair)
      guard sounding & (1 << part) != 0 else { continue }
      unsafe loops.add_windowed(
        sum + Int(frame - segment.lowerBound) * self.frame.hop, transform.output + part, window, self.frame.length)
    }
  }
}
