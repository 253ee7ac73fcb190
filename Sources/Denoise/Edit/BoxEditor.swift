// Turns down boxes of a recording:
//
//   y(t) = x(t) + Σ_j a_j(t) d_j(t)         a_j, G_j: see EditIntervals
//
// d_j is the sound of the analysis frames (see AnalysisFrame) times G_j − 1. Where all weights are 0, nothing is added:
// such samples keep their bits. Frames and hops are counted from the recording's frame 0, and each sum is made in the
// order of the frames, so the bits depend neither on the pieces in which sound arrives nor on where it begins.

/// Turns down boxes of a recording of any length, in constant memory.
package struct BoxEditor: ~Copyable {
  /// An interval that applies now.
  private struct Active {
    let interval: EditIntervals.Interval
    /// The last hop with a weight.
    let lastHop: Int64
    /// The sums of the next four hops of each channel.
    var sums: [[Float]]
  }

  private let channels: Int
  private let frame: AnalysisFrame
  private let wanted: Range<Int64>
  private let analysis: [Float]
  private let synthesis: [Float]
  private let transform: PairTransform
  private let spectrum: RowRing
  private var intervals: EditIntervals
  private var active: [Active] = []
  /// The samples of each channel from hop `firstHop` on.
  private var samples: [[Float]]
  private var firstHop: Int64
  /// The next frame to output.
  private var position: Int64
  /// The end of what has arrived.
  private var inputEnd: Int64
  private var weights: [Float]
  /// Interleaved output.
  private var output: [Float] = []

  /// - Parameters:
  ///   - startFrame: the frame of the recording that the first sample belongs to.
  ///   - wanted: the frames to output, as far as they are processed. They have the same bits as in the whole if at
  ///     least `sound(for: wanted)` is processed.
  package init(
    _ edit: SoundEdit, sampleRate: Int, channels: Int, startFrame: Int64 = 0, wanted: Range<Int64> = 0..<(.max)
  ) {
    frame = AnalysisFrame(sampleRate: sampleRate)
    self.channels = channels
    self.wanted = wanted
    analysis = frame.window()
    synthesis = frame.window(scale: frame.synthesisScale)
    transform = PairTransform(length: frame.length)
    spectrum = RowRing(width: 2 * frame.length, count: 1)
    intervals = EditIntervals(edit, frame: frame, sampleRate: sampleRate)
    weights = [Float](repeating: 0, count: frame.hop)
    let hop = Int64(frame.hop)
    firstHop = startFrame / hop - 3
    samples = [[Float]](
      repeating: [Float](repeating: 0, count: Int(startFrame - firstHop * hop)), count: channels)
    (inputEnd, position) = (startFrame, max(startFrame, wanted.lowerBound))
  }

  /// Returns the sound that must be processed so that `wanted` has the same bits as in the whole.
  package static func sound(for wanted: Range<Int64>, sampleRate: Int) -> Range<Int64> {
    let hop = Int64(AnalysisFrame(sampleRate: sampleRate).hop)
    let end = wanted.upperBound > 1 << 60 ? wanted.upperBound : ((wanted.upperBound - 1) / hop + 4) * hop
    return max(0, (wanted.lowerBound / hop - 3) * hop)..<end
  }

  /// Processes interleaved whole frames and passes on what is final, in order.
  package mutating func process<E: Error>(
    _ input: Span<Float>, _ body: (Span<Float>) throws(E) -> Void
  ) throws(E) {
    for channel in 0..<channels {
      for index in stride(from: channel, to: input.count, by: channels) { samples[channel].append(input[index]) }
    }
    inputEnd += Int64(input.count / channels)
    run()
    try passOn(atLeast: Self.pieceSamples, body)
  }

  /// Ends the sound and passes on the rest. Call nothing after it.
  package mutating func finish<E: Error>(_ body: (Span<Float>) throws(E) -> Void) throws(E) {
    let hop = Int64(frame.hop)
    let hops = Int((inputEnd + hop - 1) / hop - firstHop) + 3
    for channel in 0..<channels {
      let missing = hops * frame.hop - samples[channel].count
      samples[channel].append(contentsOf: repeatElement(0, count: max(missing, 0)))
    }
    run()
    try passOn(atLeast: 1, body)
  }

  /// Samples that are passed on at once.
  private static let pieceSamples = 16_384

  private mutating func passOn<E: Error>(atLeast count: Int, _ body: (Span<Float>) throws(E) -> Void) throws(E) {
    guard output.count >= count else { return }
    var output: [Float] = []
    swap(&output, &self.output)
    try body(output.span)
    output.removeAll(keepingCapacity: true)
    self.output = output
  }

  /// Finishes all hops whose four frames have arrived, then forgets them.
  private mutating func run() {
    let length = frame.length, hop = frame.hop
    var done = 0
    while samples[0].count - done >= length {
      begin(before: firstHop + 4)
      if !active.isEmpty {
        addFrame(at: done)
        finishHop(at: done)
      }
      emit(at: done)
      done += hop
      firstHop += 1
    }
    guard done > 0 else { return }
    for channel in 0..<channels { samples[channel].removeFirst(done) }
  }

  /// Interleaves a finished hop, as far as it is wanted.
  private mutating func emit(at place: Int) {
    let first = firstHop * Int64(frame.hop)
    let end = min(first + Int64(frame.hop), inputEnd, wanted.upperBound)
    guard position < end else { return }
    for index in Int(position - first)..<Int(end - first) {
      for channel in 0..<channels { output.append(samples[channel][place + index]) }
    }
    position = end
  }

  /// Adds the intervals with a weight in a hop before `hop`.
  private mutating func begin(before end: Int64) {
    let hop = Int64(frame.hop), half = hop / 2 + 1
    while let interval = intervals.next(before: end * hop + half) {
      let last = interval.end > 1 << 59 ? Int64.max : (interval.end + half) / hop
      guard last >= firstHop else { continue }
      let sums = [[Float]](repeating: [Float](repeating: 0, count: frame.length), count: channels)
      active.append(Active(interval: interval, lastHop: last, sums: sums))
    }
  }

  /// Adds the frame of the next four hops to the sums of all intervals.
  private mutating func addFrame(at place: Int) {
    let (length, bins) = (frame.length, frame.binCount)
    let (transform, spectrum, analysis, synthesis) = (transform, spectrum, analysis, synthesis)
    for channel in stride(from: 0, to: channels, by: 2) {
      let other = min(channel + 1, channels - 1)
      let left = samples[channel], right = samples[other]
      let sounding = unsafe left.withUnsafeBufferPointer { left in
        unsafe right.withUnsafeBufferPointer { right in
          guard let first = left.baseAddress, let second = right.baseAddress else { return UInt32(0) }
          return unsafe loops.window_pair(transform.input, first + place, second + place, analysis, length)
        }
      }
      guard sounding != 0 else { continue }
      unsafe transform.run(into: spectrum[0])
      for index in active.indices {
        let gain = active[index].interval.gain
        unsafe loops.pair_gains(transform.input, spectrum[0], gain, gain, bins)
        transform.invert()
        for part in 0...(other - channel) where sounding & (1 << part) != 0 {
          unsafe active[index].sums[channel + part].withUnsafeMutableBufferPointer { sums in
            guard let sums = sums.baseAddress else { return }
            unsafe loops.add_windowed(sums, transform.output + part, synthesis, length)
          }
        }
      }
    }
  }

  /// Adds what the intervals change of the next hop to its samples, and forgets the intervals that end there.
  private mutating func finishHop(at place: Int) {
    let hop = frame.hop
    for index in active.indices {
      var weights: [Float] = []
      swap(&weights, &self.weights)
      let isAny = active[index].interval.weigh(from: firstHop * Int64(hop), hop: hop, &weights)
      for channel in 0..<channels {
        if isAny {
          for offset in 0..<hop where weights[offset] != 0 {
            samples[channel][place + offset] += weights[offset] * active[index].sums[channel][offset]
          }
        }
        active[index].sums[channel].removeFirst(hop)
        active[index].sums[channel].append(contentsOf: repeatElement(0, count: hop))
      }
      swap(&weights, &self.weights)
    }
    active.removeAll { $0.lastHop <= firstHop }
  }
}
