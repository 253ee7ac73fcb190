// Where the segments lie, in which the gains are computed.
//
//   segment s holds the frames s S …< (s + 1) S of the short-time transform, counted from the recording's beginning;
//   its gains are a function of γ of the frames s S − C …< (s + 1) S + C and of nothing else;
//   its sound, the sum of its own frames' inverse transforms, overlaps the next segment's by three hops, added last.
//
// So the result does not depend on the sizes of the pieces in which sound arrives, nor on which segments are computed
// where or in what order, and a window that is computed alone, with enough sound around it, has the same bits as
// in the whole. Memory is that of S + 2 C frames at any length of recording.
struct SegmentGrid: Sendable, Equatable {
  /// S: a longer segment recomputes less of its neighbours (the recursions run (S + C) / S times over each frame).
  let segmentHops: Int
  /// C: frames before a segment that warm the forward recursion up, and after it, the backward one.
  let contextHops: Int
  let hop: Int
  let frameLength: Int

  /// S = 256 frames of 12 ms, C = 64: 3.1 s and 0.77 s. Against a context of 200 the output differs, in the worst of
  /// ten clips at a floor of −25 dB, by −41 dB of its level at C = 16, −47 at 24, −52 at 32, −66 at 64 and −74 at 96:
  /// the details of the cepstrum remember longest.
  static let usualSegmentHops = 256
  static let usualContextHops = 64
  /// What the frames of S + C may take: 2 channels of 48 kHz take 5.9 MB, 8 would take 24. A denoiser holds them
  /// twice and a job is to stay within 64 MB.
  static let budgetBytes = 6 << 20
  /// S + C that go over the budget, up to `largestBytes`: C is a third of them, and 24 frames lie between the 16 and
  /// the 32 above.
  static let leastHops = 72
  static let largestBytes = 32 << 20

  init(frame: AnalysisFrame, channels: Int) {
    let frameBytes = channels * 2 * frame.binCount * MemoryLayout<Float>.stride
    let affordable = max(24, Self.budgetBytes / frameBytes, min(Self.leastHops, Self.largestBytes / frameBytes))
    contextHops = min(Self.usualContextHops, affordable / 3)
    segmentHops = min(Self.usualSegmentHops, affordable - contextHops)
    hop = frame.hop
    frameLength = frame.length
  }

  /// The first frame after the segment that `frame` lies in.
  func segmentEnd(after frame: Int64) -> Int64 {
    (frame / Int64(segmentHops) + 1) * Int64(segmentHops)
  }

  /// Sound, in frames of the recording, that must be known before and after a window.
  var context: (before: Int64, after: Int64) {
    let reach = Int64((segmentHops + contextHops) * hop + frameLength)
    return (reach, reach)
  }
}
