/// Cuts frames of 20 ms, one every 30 ms, from interleaved sound, mixed and decimated as described in
/// NoiseRegionFinder.swift.
struct SparseFrames {
  /// Samples per mixed frame.
  let length: Int
  /// The sample rate of the mix, in Hz.
  let sampleRate: Double
  /// Frames of the recording between the starts of two mixed frames.
  let framesPerHop: Int
  /// The newest mixed frame: `length` samples, each the weighted sum of a group of samples.
  private(set) var mix: [Float]

  private let channels: Int
  /// The weight of each sample in a group.
  private let weights: [Int16]
  private var samples: [Int16]
  /// Samples of the current hop that were consumed, including those skipped after the frame.
  private var seen = 0

  /// The minimum rate of a decimated mix, in Hz.
  private static let leastRate = 11_025

  init(sampleRate: Int, channels: Int) {
    precondition(sampleRate > 0 && channels > 0, "sound has a rate and channels")
    let thinning = max(1, sampleRate / Self.leastRate)
    self.channels = channels
    self.sampleRate = Double(sampleRate) / Double(thinning)
    length = AnalysisFrame.quickLength(near: 0.020 * self.sampleRate)
    framesPerHop = max(length * thinning, Int((0.030 * Double(sampleRate)).rounded()))
    weights = (0..<(thinning * channels)).map { $0 % channels % 2 == 0 ? 5 : 3 }
    samples = [Int16](repeating: 0, count: length * thinning * channels)
    mix = [Float](repeating: 0, count: length)
  }

  /// Consumes samples from `position` on until a frame is full.
  /// - Returns: whether a frame is full, so that `mix` and `meanSquare` are valid.
  mutating func fill(from source: Span<Int16>, _ position: inout Int) -> Bool {
    if seen >= samples.count {
      let skipped = min(source.count - position, framesPerHop * channels - seen)
      position += skipped
      seen += skipped
      guard seen == framesPerHop * channels else { return false }
      seen = 0
    }
    let count = min(source.count - position, samples.count - seen)
    Self.copy(source.extracting(position..<(position + count)), into: &samples, at: seen)
    position += count
    seen += count
    guard seen == samples.count else { return false }
    mixDown()
    return true
  }

  /// The mean square of the newest frame's samples over all channels, in 16-bit steps.
  var meanSquare: Double {
    let samples = self.samples.span
    var lanes = InlineArray<16, Float>(repeating: 0)
    var start = 0
    while start + 16 <= samples.count {
      let part = samples.extracting(start..<(start + 16))
      for lane in 0..<16 {
        let sample = Float(part[lane])
        lanes[lane] += sample * sample
      }
      start += 16
    }
    var sum = 0.0
    for lane in 0..<16 { sum += Double(lanes[lane]) }
    for index in start..<samples.count { sum += Double(samples[index]) * Double(samples[index]) }
    return sum / Double(samples.count)
  }

  private mutating func mixDown() {
    // The width is a constant in the common cases: mono and stereo at 44.1 and 48 kHz.
    let samples = self.samples, weights = self.weights
    switch weights.count {
    case 4: Self.mix(samples.span, weights.span, width: 4, into: &mix)
    case 8: Self.mix(samples.span, weights.span, width: 8, into: &mix)
    default: Self.mix(samples.span, weights.span, width: weights.count, into: &mix)
    }
  }

  @inline(__always)
  private static func mix(_ samples: Span<Int16>, _ weights: Span<Int16>, width: Int, into mix: inout [Float]) {
    precondition(samples.count == mix.count * width && weights.count == width)
    var target = mix.mutableSpan
    for index in 0..<target.count {
      let group = samples.extracting((index * width)..<((index + 1) * width))
      var sum: Int32 = 0
      for offset in 0..<width { sum &+= Int32(group[offset]) &* Int32(weights[offset]) }
      target[index] = Float(sum)
    }
  }

  @inline(__always)
  private static func copy(_ source: Span<Int16>, into samples: inout [Int16], at start: Int) {
    var all = samples.mutableSpan
    var target = all._mutatingExtracting(start..<(start + source.count))
    let count = target.count
    precondition(source.count == count)
    for index in 0..<count { target[index] = source[index] }
  }
}
