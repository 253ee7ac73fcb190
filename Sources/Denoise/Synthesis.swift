/// Turns segments of spectra and gains back into sound.
///
/// A segment's frames are added up from silence, in order; the three hops by which it overlaps the next one are
/// added to that one's sum. So a segment's sum does not depend on any other.
struct Synthesis: ~Copyable {
  private let frame: AnalysisFrame
  private let channels: Int
  private let window: [Float]
  /// The last three hops of the segment before, a channel after the other.
  private var tail: [Float]

  init(frame: AnalysisFrame, channels: Int) {
    self.frame = frame
    self.channels = channels
    window = frame.window(scale: frame.synthesisScale)
    tail = [Float](repeating: 0, count: channels * 3 * frame.hop)
  }

  /// Sums up a segment.
  /// - Parameters:
  ///   - spectra: of its frames, from the first on, the channels of a frame together.
  ///   - gains: a row per frame of the segment, for all channels.
  ///   - sound: what becomes of it; its memory is used again.
  mutating func add(
    _ segment: Range<Int64>, spectra all: [Float], gains: [Float], _ fft: inout RealFFT, to sound: inout SegmentSound
  ) {
    let bins = frame.binCount
    sound.clear(
      from: (segment.lowerBound - 3) * Int64(frame.hop), finalCount: segment.count * frame.hop, overlap: 3 * frame.hop,
      channels: channels)
    let window = self.window
    let size = channels * 2 * bins
    for row in 0..<segment.count {
      let gain = gains.span.extracting((row * bins)..<((row + 1) * bins))
      let spectra = all.span.extracting((row * size)..<((row + 1) * size))
      for channel in 0..<channels {
        let spectrum = spectra.extracting((channel * 2 * bins)..<((channel + 1) * 2 * bins))
        let offset = channel * sound.stride + row * frame.hop
        fft.inverse({ Kernels.apply(gain, to: spectrum, into: &$0) }) {
          Self.add($0, window, to: &sound.sum, at: offset)
        }
      }
    }
    addTail(to: &sound)
  }

  @inline(__always)
  private static func add(_ samples: Span<Float>, _ window: [Float], to sum: inout [Float], at start: Int) {
    var all = sum.mutableSpan
    var target = all._mutatingExtracting(start..<(start + samples.count))
    Kernels.addProduct(samples, window.span, to: &target)
  }

  private mutating func addTail(to sound: inout SegmentSound) {
    let overlap = 3 * frame.hop
    for channel in 0..<channels {
      let start = channel * sound.stride
      for index in 0..<overlap { sound.sum[start + index] += tail[channel * overlap + index] }
      for index in 0..<overlap { tail[channel * overlap + index] = sound.sum[start + sound.finalCount + index] }
    }
  }
}
