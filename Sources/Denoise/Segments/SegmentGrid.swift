// The segments for which gains are computed.
//
//   Segment s consists of frames s S …< (s + 1) S of the short-time transform, counted from the recording's start.
//   Its gains depend only on γ of frames s S − C …< (s + 1) S + C.
//   Its sound, the sum of its own frames' inverse transforms, overlaps the next segment's by three hops, added last.
//
// So the result doesn't depend on the sizes of the pieces in which sound arrives, or on which segments are computed
// where or in what order. A window that is computed alone, with enough sound around it, has the same bits as in the
// whole. Memory is that of S + 2 C frames for any length of recording, and of S more with two threads.
//
// Frames are analyzed in blocks: block b consists of frames b B …< (b + 1) B. B is even, so that the pairs of frames
// that share a transform, 2 p and 2 p + 1, aren't divided.
struct SegmentGrid: Sendable, Equatable {
  /// S. A longer segment recomputes less of its neighbors: the recursions run (S + C) / S times over each frame.
  let segmentHops: Int
  /// C: the frames before a segment that warm up the forward recursion, and after it, the backward one.
  let contextHops: Int
  /// B
  let blockHops: Int
  /// The frames before and after a stretch that the tracking of its noise needs; 0 if it isn't tracked.
  let trackingHops: Int
  let hop: Int

  /// S = 256 frames of 12 ms, C = 64: 3.1 s and 0.77 s. Compared with a context of 200, the output in the worst of ten
  /// clips with a floor of −25 dB differs by −41 dB of its level for C = 16, −47 for 24, −52 for 32, −66 for 64, and
  /// −74 for 96: the details of the cepstrum persist longest.
  static let usualSegmentHops = 256
  static let usualContextHops = 64
  static let usualBlockHops = 32
  /// The memory budget for the spectra of S + C frames: 2 channels at 48 kHz need 5.9 MB, 8 would need 24. A denoiser
  /// holds up to twice as much, and a job must stay within 64 MB.
  static let budgetBytes = 6 << 20
  /// The minimum of S + C, which may exceed the budget up to `largestBytes`: C is a third of it, 24 frames, between the
  /// 16 and 32 measured above.
  static let leastHops = 72
  static let largestBytes = 32 << 20

  /// - Parameter isTracked: whether the noise is tracked. This needs more context, but leaves the segments as they are.
  init(frame: AnalysisFrame, channels: Int, isTracked: Bool = false) {
    let frameBytes = channels * 2 * frame.binCount * MemoryLayout<Float>.stride
    let affordable = max(24, Self.budgetBytes / frameBytes, min(Self.leastHops, Self.largestBytes / frameBytes))
    contextHops = min(Self.usualContextHops, affordable / 3)
    segmentHops = min(Self.usualSegmentHops, affordable - contextHops)
    blockHops = min(Self.usualBlockHops, contextHops / 2 * 2)
    trackingHops = isTracked ? contextHops * 3 / 8 * 4 : 0
    hop = frame.hop
  }

  /// Returns the segments whose sound overlaps a range of the recording's, which isn't empty.
  func segments(in sound: Range<Int64>) -> Range<Int64> {
    let first = sound.lowerBound / Int64(hop), last = (sound.upperBound - 1) / Int64(hop) + 3
    return first / Int64(segmentHops)..<last / Int64(segmentHops) + 1
  }

  /// Returns the frames whose analysis these segments need; the first ones may be before the recording's start.
  func frames(for segments: Range<Int64>) -> Range<Int64> {
    let first = segments.lowerBound * Int64(segmentHops) - Int64(contextHops)
    let end = segments.upperBound * Int64(segmentHops) + Int64(contextHops)
    guard trackingHops > 0 else { return first..<end }
    let stretches = firstStretch(of: segments.lowerBound)..<segments.upperBound
    let context = Int64(trackingHops)
    return (start(ofStretch: stretches.lowerBound) - context)..<(start(ofStretch: stretches.upperBound) + context)
  }

  /// Returns the first frame of a stretch, which consists of whole ticks; see NoiseTracker.
  func start(ofStretch stretch: Int64) -> Int64 { (stretch * Int64(segmentHops) + Int64(contextHops) + 3) / 4 * 4 }

  /// Returns the first stretch that a segment's context overlaps. The context begins S − 2 C frames after
  /// (s − 1) S + C, and a stretch begins up to three frames after that, so in short segments it may be stretch s − 2.
  func firstStretch(of segment: Int64) -> Int64 {
    start(ofStretch: segment - 1) <= segment * Int64(segmentHops) - Int64(contextHops) ? segment - 1 : segment - 2
  }

  /// Returns the sound that must be processed so that a part of it, `wanted`, has the same bits as in the whole.
  func sound(for wanted: Range<Int64>) -> Range<Int64> {
    let frames = frames(for: segments(in: wanted))
    // Three hops of each frame are before its own, and a pair of frames needs the hops of both.
    return max(0, (frames.lowerBound - 4) * Int64(hop))..<(frames.upperBound + 1) * Int64(hop)
  }

  /// The number of frames whose analysis is kept: those that a segment and the tracking need, in whole blocks, and with
  /// two threads, another segment.
  func keptFrames(isShared: Bool) -> Int {
    segmentHops + 2 * contextHops + trackingHops + blockHops + (trackingHops > 0 ? 4 : 0)
      + (isShared ? segmentHops : 0)
  }
}
