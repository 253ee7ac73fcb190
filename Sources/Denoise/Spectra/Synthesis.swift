/// Turns segments of spectra and gains back into sound.
struct Synthesis: Sendable {
  private let frame: AnalysisFrame
  private let channels: Int
  private let window: [Float]
  private let isResidue: Bool

  /// - Parameter isResidue: whether the gains are those of the residue.
  init(frame: AnalysisFrame, channels: Int, isResidue: Bool) {
    self.isResidue = isResidue
    self.frame = frame
    self.channels = channels
    window = frame.window(scale: frame.synthesisScale)
  }

  /// Adds up a segment's frames in order, starting from silence.
  /// - Parameters:
  ///   - segment: its frames.
  ///   - onsets: those in and around it.
  ///   - rows: their spectra and gains.
  ///   - sums: receives a row per channel of `segment.count + 3` hops. The last three overlap the next segment.
  func add(
    _ segment: Range<Int64>, around onsets: [Onset], _ rows: FrameRows, _ workspace: Workspace, into sums: RowRing
  ) {
    let onsets = onsets.filter { $0.frame < segment.upperBound && $0.frame + 3 >= segment.lowerBound }
    for channel in 0..<channels {
      let sum = unsafe sums[Int64(channel)]
      unsafe sum.update(repeating: 0, count: (segment.count + 3) * frame.hop)
      for pair in (segment.lowerBound / 2)...((segment.upperBound - 1) / 2) {
        if let onset = onsets.first(where: { $0.frame <= 2 * pair + 1 && $0.frame + 3 >= 2 * pair }) {
          unsafe add(pair, of: segment, dividedBy: onset, rows, channel, workspace, to: sum)
        } else {
          unsafe add(pair, of: segment, rows, channel, workspace.transform, to: sum)
        }
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

  /// Adds the frames of a pair that contain an onset, or of which one does: the sound from the onset on with their own
  /// gains, and without what these spread to before the onset; and the sound before it with those of the last frame
  /// without the onset.
  private func add(
    _ pair: Int64, of segment: Range<Int64>, dividedBy onset: Onset, _ rows: FrameRows, _ channel: Int,
    _ workspace: Workspace, to sum: Row
  ) {
    let spectrum = unsafe rows.spectrum(ofPair: pair, channel: channel), transform = workspace.transform
    let own = ((2 * pair)..<(2 * pair + 2)).clamped(to: segment)
    let cuts = [2 * pair, 2 * pair + 1].map { onset.samplesBefore(in: $0, hop: frame.hop) }
    let open = unsafe workspace.scratch[0], containing = (onset.frame..<(onset.frame + 4)).clamped(to: segment)
    for bin in 0..<frame.binCount {
      let gains = containing.map { unsafe rows.gains[$0][bin] }
      unsafe open[bin] = (isResidue ? gains.min() : gains.max()) ?? 1
    }
    for isBefore in [false, true] {
      unsafe transform.input.update(from: spectrum, count: 2 * frame.length)
      transform.invert()
      unsafe keep(cuts, isBefore, of: transform.output, scale: 1 / Float(frame.length), in: transform.input)
      transform.run()
      let gains = unsafe [own.lowerBound, own.upperBound - 1].map { number in
        guard cuts[Int(number - 2 * pair)] > 0 else { return unsafe rows.gains[number] }
        return unsafe isBefore ? rows.gains[onset.frame - 1] : open
      }
      unsafe loops.pair_gains(transform.input, transform.output, gains[0], gains[1], frame.binCount)
      transform.invert()
      if !isBefore { unsafe keep(cuts, false, of: transform.output, scale: 1, in: transform.output) }
      for frame in own {
        let part = Int(frame - 2 * pair)
        guard unsafe Int(spectrum[2 * self.frame.length]) & (1 << part) != 0 else { continue }
        unsafe loops.add_windowed(
          sum + Int(frame - segment.lowerBound) * self.frame.hop, transform.output + part, window, self.frame.length)
      }
    }
  }

  /// Scales the samples of two frames before their cuts, or from these on, and sets the others to 0.
  private func keep(_ cuts: [Int], _ isBefore: Bool, of source: Row, scale: Float, in target: Row) {
    for part in 0..<2 {
      for index in 0..<frame.length {
        let place = 2 * index + part
        unsafe target[place] = (index < cuts[part]) == isBefore ? source[place] * scale : 0
      }
    }
  }
}
