import CPeaks

/// Cuts frames of 20 ms, one every 30 ms, from interleaved sound, mixed and decimated as described in
/// NoiseRegionFinder.swift.
@safe
struct SparseFrames {
  /// Samples per mixed frame.
  let length: Int
  /// The sample rate of the mix, in Hz.
  let sampleRate: Double
  /// Frames of the recording between the starts of two mixed frames.
  let framesPerHop: Int
  /// The newest mixed frame: `length` samples, each the weighted sum of a group of samples.
  private(set) var mix: [Float]
  /// The mean square of the newest frame's samples over all channels, in 16-bit steps; 0 if no channel's samples
  /// change, which is digital silence with an offset.
  private(set) var meanSquare = 0.0

  private let channels: Int
  /// The weight of each sample in a group.
  private let weights: [Int16]
  /// Whether the weights alternate between 5 and 3, as for stereo.
  private let hasPairs: Bool
  /// The samples of a frame that began in an earlier piece of the recording.
  private var samples: [Int16]
  /// Number of those samples that are known.
  private var filled = 0
  /// Number of samples to skip before the next frame.
  private var skip = 0
  /// Points to a constant.
  private let loops: UnsafePointer<peak_loops>

  /// The minimum rate of a decimated mix, in Hz.
  private static let leastRate = 11_025

  init(sampleRate: Int, channels: Int) {
    unsafe self.init(sampleRate: sampleRate, channels: channels, loops: peak_loops_best())
  }

  /// Creates a cutter that uses one instruction set's loops, for tests.
  @unsafe
  init(sampleRate: Int, channels: Int, loops: UnsafePointer<peak_loops>) {
    precondition(sampleRate > 0 && channels > 0, "sound has a rate and channels")
    let thinning = max(1, sampleRate / Self.leastRate)
    self.channels = channels
    self.sampleRate = Double(sampleRate) / Double(thinning)
    length = AnalysisFrame.quickLength(near: 0.020 * self.sampleRate)
    framesPerHop = max(length * thinning, Int((0.030 * Double(sampleRate)).rounded()))
    weights = (0..<(thinning * channels)).map { $0 % channels % 2 == 0 ? 5 : 3 }
    hasPairs = channels % 2 == 0
    samples = [Int16](repeating: 0, count: length * thinning * channels)
    mix = [Float](repeating: 0, count: length)
    unsafe self.loops = unsafe loops
  }

  /// Number of the recording's frames in a mixed frame.
  var frameLength: Int { samples.count / channels }

  /// Whether a frame has begun but isn't full.
  var isInFrame: Bool { filled > 0 }

  /// Continues at a frame of the recording. Mixed frames that began before it are left out.
  mutating func begin(at frame: Int64) {
    let hop = Int64(framesPerHop)
    skip = Int((hop - frame % hop) % hop) * channels
    filled = 0
  }

  /// Consumes samples from `position` on until a frame is full.
  /// - Returns: whether a frame is full, so that `mix` and `meanSquare` are valid.
  mutating func fill(from source: Span<Int16>, _ position: inout Int) -> Bool {
    let skipped = min(source.count - position, skip)
    position += skipped
    skip -= skipped
    let count = min(source.count - position, samples.count - filled)
    guard count > 0 else { return false }
    let part = source.extracting(position..<(position + count))
    position += count
    if count == samples.count {
      measure(part)
    } else {
      Self.copy(part, into: &samples, at: filled)
      filled += count
      guard filled == samples.count else { return false }
      let samples = samples
      measure(samples.span)
      filled = 0
    }
    skip = framesPerHop * channels - samples.count
    return true
  }

  private mutating func measure(_ frame: Span<Int16>) {
    meanSquare = isConstant(frame) ? 0 : meanSquare(of: frame)
    if hasPairs {
      unsafe frame.withUnsafeBufferPointer { frame in
        unsafe mix.withUnsafeMutableBufferPointer { mix in
          guard let target = mix.baseAddress, let source = frame.baseAddress else { return }
          unsafe loops.pointee.mix_pairs(target, source, weights.count, length)
        }
      }
    } else {
      let weights = weights
      Self.mix(frame, weights.span, into: &mix)
    }
  }

  private func isConstant(_ frame: Span<Int16>) -> Bool {
    for index in channels..<frame.count where frame[index] != frame[index - channels] { return false }
    return true
  }

  /// Adds sample i to sum i mod 16. Samples after the last whole 16 are added directly to the total.
  private func meanSquare(of frame: Span<Int16>) -> Double {
    let whole = frame.count & ~15
    var lanes = InlineArray<16, Float>(repeating: 0)
    var sums = lanes.mutableSpan
    unsafe frame.withUnsafeBufferPointer { frame in
      unsafe sums.withUnsafeMutableBufferPointer { sums in
        guard let target = sums.baseAddress, let source = frame.baseAddress else { return }
        unsafe loops.pointee.square_sums(target, source, whole)
      }
    }
    var sum = 0.0
    for lane in 0..<16 { sum += Double(lanes[lane]) }
    for index in whole..<frame.count { sum += Double(frame[index]) * Double(frame[index]) }
    return sum / Double(frame.count)
  }

  private static func mix(_ samples: Span<Int16>, _ weights: Span<Int16>, into mix: inout [Float]) {
    let width = weights.count
    precondition(samples.count == mix.count * width)
    var target = mix.mutableSpan
    for index in 0..<target.count {
      let group = samples.extracting((index * width)..<((index + 1) * width))
      var sum: Int32 = 0
      for offset in 0..<width { sum &+= Int32(group[offset]) &* Int32(weights[offset]) }
      target[index] = Float(sum)
    }
  }

  private static func copy(_ source: Span<Int16>, into samples: inout [Int16], at start: Int) {
    var all = samples.mutableSpan
    var target = all._mutatingExtracting(start..<(start + source.count))
    let count = target.count
    precondition(source.count == count)
    for index in 0..<count { target[index] = source[index] }
  }
}
