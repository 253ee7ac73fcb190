/// Turns segments of spectra and gains back into sound.
///
/// A segment's frames are added up in order, starting from silence. The three hops by which it overlaps the next
/// segment are added to that segment's sum, so no sum depends on another.
struct Synthesis: ~Copyable {
  private let frame: AnalysisFrame
  private let channels: Int
  private let window: [Float]
  /// The sum of one segment, `stride` samples per channel.
  private var sum: [Float] = []
  private var stride = 0
  /// The last three hops of the previous segment, one channel after the other.
  private var tail: [Float]

  init(frame: AnalysisFrame, channels: Int) {
    self.frame = frame
    self.channels = channels
    window = frame.window(scale: frame.synthesisScale)
    tail = [Float](repeating: 0, count: channels * 3 * frame.hop)
  }

  /// Synthesizes a segment.
  /// - Parameters:
  ///   - spectra: the spectra of its frames, starting with the first; the channels of a frame are in a row.
  ///   - gains: one row per frame of the segment, for all channels.
  ///   - sound: receives the result; its memory is reused.
  mutating func add(
    _ segment: Range<Int64>, spectra all: [Float], gains: [Float], _ fft: inout RealFFT, to sound: inout SegmentSound
  ) {
    let bins = frame.binCount
    let count = segment.count * frame.hop
    stride = count + 3 * frame.hop
    if sum.count < channels * stride { sum = [Float](repeating: 0, count: channels * stride) }
    Kernels.clear(&sum)
    let window = self.window
    let size = channels * 2 * bins
    for row in 0..<segment.count {
      let gain = gains.span.extracting((row * bins)..<((row + 1) * bins))
      let spectra = all.span.extracting((row * size)..<((row + 1) * size))
      for channel in 0..<channels {
        let spectrum = spectra.extracting((channel * 2 * bins)..<((channel + 1) * 2 * bins))
        let offset = channel * stride + row * frame.hop
        fft.inverse({ Kernels.apply(gain, to: spectrum, into: &$0) }) {
          Self.add($0, window, to: &sum, at: offset)
        }
      }
    }
    addTail(behind: count)
    interleave(count, into: &sound.samples)
    (sound.start, sound.count) = ((segment.lowerBound - 3) * Int64(frame.hop), count)
  }

  @inline(__always)
  private static func add(_ samples: Span<Float>, _ window: [Float], to sum: inout [Float], at start: Int) {
    var all = sum.mutableSpan
    var target = all._mutatingExtracting(start..<(start + samples.count))
    Kernels.addProduct(samples, window.span, to: &target)
  }

  private mutating func addTail(behind count: Int) {
    let overlap = 3 * frame.hop
    for channel in 0..<channels {
      for index in 0..<overlap {
        sum[channel * stride + index] += tail[channel * overlap + index]
      }
      for index in 0..<overlap {
        tail[channel * overlap + index] = sum[channel * stride + count + index]
      }
    }
  }

  private func interleave(_ count: Int, into samples: inout [Float]) {
    if samples.count < count * channels { samples = [Float](repeating: 0, count: count * channels) }
    for channel in 0..<channels {
      let lane = sum.span.extracting((channel * stride)..<(channel * stride + count))
      // The distance is a constant in the common cases, which lets the loops vectorize.
      switch channels {
      case 1: Self.interleave(lane, as: 0, of: 1, into: &samples)
      case 2: Self.interleave(lane, as: channel, of: 2, into: &samples)
      default: Self.interleave(lane, as: channel, of: channels, into: &samples)
      }
    }
  }

  @inline(__always)
  private static func interleave(_ lane: Span<Float>, as channel: Int, of channels: Int, into all: inout [Float]) {
    var whole = all.mutableSpan
    var part = whole._mutatingExtracting(0..<(lane.count * channels))
    Kernels.interleave(lane, as: channel, of: channels, into: &part)
  }
}
