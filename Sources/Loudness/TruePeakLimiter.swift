// A gain, and a limiter that holds the true peak of the result. For frame t of all channels:
//
//   p[t] = the highest |x| of the frame and of the points interpolated around it, times the gain
//   n[t] = min(1, ceiling / p[t])                                  the factor that the frame needs
//   m[i] = the smallest of n[i − W + 1 … i]                        W: 5 ms
//   r[i] = m[i] if that is smaller than r[i − 1], else r[i − 1] + (m[i] − r[i − 1]) · a      a: release of 60 ms
//   y[t] = x[t] · gain · the mean of r[t … t + W − 1]
//
// Every m in that mean covers frame t, so the factor is at most n[t], and it changes smoothly. All channels share one
// factor, so that the stereo image doesn't move.
//
// Points are also interpolated between the sound and the silence before and after it. So the frames of silence that the
// filter reaches from the first frame are part of the sound here, but not of the result.
//
// Points are interpolated with the same filter as libebur128's: a windowed sinc of 49 taps, at 4 times the rate below
// 96 kHz, twice below 192 kHz. The factor changes within the filter's length, so the true peak of the result may exceed
// the ceiling by some hundredths of a decibel.

/// Applies a gain to a sound and holds its true peak. Returns as many frames as it is given, some milliseconds later.
package struct TruePeakLimiter {
  private let channels: Int
  private let gain: Float
  private let ceiling: Float
  private let window: Int
  private let release: Double
  private let filter: PeakFilter
  private var minimum: SlidingMinimum
  /// The values of r for the newest `window` frames, in a ring, and their sum.
  private var released: [Double]
  private var releasedSum: Double
  /// The newest value of r. A float would stop a ten-thousandth short of 1.
  private var last = 1.0
  /// The highest peak between the previous frame and the next one.
  private var previousPeak: Float = 0
  /// Interleaved frames: those not returned yet, after those that the filter needs.
  private var held: [Float]
  /// The number of the first frame in `held`. The sound's first frame has the number `filter.reach`; frame 0 is the
  /// first one that the filter reaches from there.
  private var heldStart: Int
  /// The number of frames whose factor is known.
  private var position = 0
  private var output: [Float] = []

  /// Number of frames that are processed at once.
  private static let blockFrames = 4096

  /// - Parameters:
  ///   - gainDB: the gain in dB, finite.
  ///   - ceilingDB: the true peak to hold, in dB relative to full scale.
  package init(gainDB: Double, ceilingDB: Double, sampleRate: Int, channels: Int) {
    self.channels = channels
    gain = Float(Decibels.factor(gainDB))
    ceiling = Float(Decibels.factor(ceilingDB))
    window = max(sampleRate / 200, 1)
    release = min(1 / (0.06 * Double(sampleRate)), 1)
    filter = PeakFilter(sampleRate: sampleRate)
    minimum = SlidingMinimum(window: window)
    released = [Double](repeating: 1, count: window)
    releasedSum = Double(window)
    heldStart = -(window + filter.reach)
    held = [Float](repeating: 0, count: (window + 2 * filter.reach) * channels)
  }

  /// Passes the frames that can be returned after these to `body`, interleaved.
  package mutating func process<E: Error>(
    _ samples: Span<Float>, _ body: (Span<Float>) throws(E) -> Void
  ) throws(E) {
    var start = 0
    while start < samples.count {
      let end = min(start + Self.blockFrames * channels, samples.count)
      for index in start..<end { held.append(samples[index]) }
      try advance(body)
      start = end
    }
  }

  /// Passes the remaining frames to `body`. Call it once, at the end.
  package mutating func finish<E: Error>(_ body: (Span<Float>) throws(E) -> Void) throws(E) {
    held += [Float](repeating: 0, count: (window - 1 + filter.reach) * channels)
    try advance(body)
  }

  /// Computes the factors of all frames that have `reach` frames after them, and returns what they complete.
  private mutating func advance<E: Error>(_ body: (Span<Float>) throws(E) -> Void) throws(E) {
    let end = heldStart + held.count / channels - filter.reach
    guard end > position else { return }
    output.removeAll(keepingCapacity: true)
    if isUnlimited(to: end) {
      let first = max(position - window + 1, filter.reach)
      for index in place(first)..<place(max(end - window + 1, first)) { output.append(held[index] * gain) }
      previousPeak = 0
      position = end
    } else {
      while position < end { step() }
    }
    discard()
    if !output.isEmpty { try body(output.span) }
  }

  /// Whether every factor up to frame `end` is 1, because no point can exceed the ceiling, nor did any lately.
  private mutating func isUnlimited(to end: Int) -> Bool {
    guard last == 1, abs(releasedSum - Double(window)) < 1e-6, minimum.isIdle, previousPeak * gain <= ceiling else {
      return false
    }
    // Without the rounding errors of many sums.
    releasedSum = Double(window)
    var highest: Float = 0
    for index in place(position - filter.reach)..<held.count { highest = max(highest, held[index].magnitude) }
    return highest * gain * filter.bound <= ceiling
  }

  private func place(_ frame: Int) -> Int { (frame - heldStart) * channels }

  private mutating func step() {
    let frame = position - heldStart
    var peak: Float = 0
    for channel in 0..<channels {
      peak = max(peak, filter.peak(of: held.span, frame: frame, channel: channel, channels: channels))
    }
    // A point between two frames counts for both.
    let loudest = max(peak, previousPeak) * gain
    previousPeak = peak
    let lowest = Double(minimum.append(loudest > ceiling ? ceiling / loudest : 1))
    last = lowest < last ? lowest : last + (lowest - last) * release
    if last > 0.999_99 { last = 1 }
    let slot = position % window
    releasedSum += last - released[slot]
    released[slot] = last
    let ready = position - window + 1
    position += 1
    guard ready >= filter.reach else { return }
    let factor = gain * Float(releasedSum / Double(window))
    let first = place(ready)
    for index in first..<first + channels { output.append(held[index] * factor) }
  }

  /// Removes the frames that neither the filter nor a result needs any more.
  private mutating func discard() {
    let needed = min(position - window + 1, position - filter.reach)
    guard needed > heldStart else { return }
    held.removeFirst((needed - heldStart) * channels)
    heldStart = needed
  }
}

/// The smallest of the last values, each 1 or less.
private struct SlidingMinimum {
  private let window: Int
  /// Candidates: each is smaller than all that follow.
  private var values: [(number: Int, value: Float)] = []
  private var first = 0
  private var count = 0

  init(window: Int) { self.window = window }

  /// Whether the last values are all 1.
  var isIdle: Bool { first == values.count }

  /// Appends a value and returns the smallest of the last `window` values.
  mutating func append(_ value: Float) -> Float {
    count += 1
    while first < values.count, let newest = values.last, newest.value >= value { values.removeLast() }
    if value < 1 { values.append((count, value)) }
    while first < values.count, values[first].number <= count - window { first += 1 }
    if first > 1024 || first == values.count {
      values.removeFirst(first)
      first = 0
    }
    return first < values.count ? values[first].value : 1
  }
}
