// Which work can be done when, and by any of the threads:
//
//   analysis of block b     once its samples have arrived and there is room for the result
//   tracking of stretch s   once the blocks up to frame (s + 1) S + C + its context, or to the end, are analyzed
//   segment s               once the blocks up to frame (s + 1) S + C, or to the end, are analyzed (and tracked)
//   output of segment s     once it is computed
//
// Blocks are begun in order and end in any order. Segments are computed one after the other: they are a third of the
// work for stereo, and half of it for mono. The analysis is kept in a ring, from frame s S − C on for the first segment
// s that isn't computed. With two threads it has room for the analysis to go on while a segment is computed, and a
// segment is computed while the one before it is output. Stretches are tracked one after the other.
struct SegmentSchedule: Sendable {
  enum Task: Equatable, Sendable {
    case block(Int64)
    case stretch(Int64)
    case segment(Int64)
  }

  private let grid: SegmentGrid
  private let isShared: Bool
  /// Where the recording's frames begin.
  private let firstFrame: Int64
  /// Where they end, once that is known.
  private var endFrame: Int64?
  /// The first block that hasn't arrived.
  private(set) var nextBlock: Int64
  /// The first block whose analysis hasn't begun.
  private var nextAnalysis: Int64
  /// Blocks that are being analyzed.
  private var running: [Int64] = []
  /// The first stretch that isn't tracked.
  private var nextStretch: Int64
  private var isTracking = false
  /// The first segment that isn't computed.
  private var nextSegment: Int64
  private var isComputing = false
  /// The first segment that isn't output.
  private var nextOutput: Int64
  /// The segments to output end before this one.
  private let endSegment: Int64

  /// - Parameters:
  ///   - isShared: whether there are two threads.
  ///   - first: the first frame.
  ///   - segments: those to output, as far as there are frames.
  init(grid: SegmentGrid, isShared: Bool, startingAt first: Int64, segments: Range<Int64>) {
    self.grid = grid
    self.isShared = isShared
    firstFrame = first
    nextBlock = first / Int64(grid.blockHops)
    nextAnalysis = nextBlock
    nextSegment = segments.lowerBound
    nextOutput = nextSegment
    endSegment = segments.upperBound
    nextStretch = grid.firstStretch(of: nextSegment)
  }

  // MARK: Blocks arrive

  /// Whether the next block may be accepted: no more than those of a segment wait to be analyzed.
  var hasRoom: Bool { nextBlock - nextAnalysis <= Int64(grid.segmentHops / grid.blockHops) }

  /// Accepts the next block.
  mutating func acceptBlock() { nextBlock += 1 }

  /// Ends the recording before a frame; the blocks up to it may still follow.
  mutating func end(before frame: Int64) { endFrame = frame }

  // MARK: Tasks

  /// Begins a task that is ready, if possible of the preferred kind, or returns nil.
  mutating func begin(prefersSegments: Bool) -> Task? {
    if prefersSegments { return beginSegment() ?? beginStretch() ?? beginBlock() }
    return beginBlock() ?? beginStretch() ?? beginSegment()
  }

  private mutating func beginBlock() -> Task? {
    let kept = firstKept
    let room = kept + Int64(grid.keptFrames(isShared: isShared))
    guard nextAnalysis < nextBlock, (nextAnalysis + 1) * Int64(grid.blockHops) <= room else { return nil }
    running.append(nextAnalysis)
    nextAnalysis += 1
    return .block(nextAnalysis - 1)
  }

  /// The first frame whose analysis is still needed, or is being written. The first block begins before the first
  /// segment's context.
  private var firstKept: Int64 {
    let kept = min(nextSegment * Int64(grid.segmentHops) - Int64(grid.contextHops), analyzed)
    return grid.trackingHops > 0 ? min(kept, context(ofStretch: nextStretch).lowerBound / 4 * 4) : kept
  }

  /// The end of the frames that are analyzed without a gap.
  private var analyzed: Int64 { (running.min() ?? nextAnalysis) * Int64(grid.blockHops) }

  private mutating func beginStretch() -> Task? {
    guard grid.trackingHops > 0, !isTracking, nextStretch <= nextSegment + 1, nextStretch < endSegment,
      context(ofStretch: nextStretch).upperBound <= analyzed
    else { return nil }
    isTracking = true
    return .stretch(nextStretch)
  }

  private mutating func beginSegment() -> Task? {
    guard grid.trackingHops == 0 || nextStretch > nextSegment else { return nil }
    guard !isComputing, nextSegment - nextOutput < (isShared ? 2 : 1), nextSegment < endSegment,
      !frames(of: nextSegment).isEmpty, context(of: nextSegment).upperBound <= analyzed
    else { return nil }
    isComputing = true
    return .segment(nextSegment)
  }

  /// Ends a task that was begun.
  mutating func end(_ task: Task) {
    switch task {
    case .block(let block): running.removeAll { $0 == block }
    case .stretch: (nextStretch, isTracking) = (nextStretch + 1, false)
    case .segment: (nextSegment, isComputing) = (nextSegment + 1, false)
    }
  }

  // MARK: Segments are output

  /// The next segment to output, if it is computed.
  var finishedSegment: Int64? { nextOutput < nextSegment ? nextOutput : nil }

  /// Makes room for another segment in place of the oldest one.
  mutating func releaseSegment() { nextOutput += 1 }

  /// Whether everything was computed and output, after the end.
  var isFinished: Bool {
    nextOutput >= endSegment || endFrame.map { nextOutput * Int64(grid.segmentHops) >= $0 } ?? false
  }

  // MARK: Frames

  /// Returns the frames of a segment.
  func frames(of segment: Int64) -> Range<Int64> { frames(of: segment, around: 0) }

  /// Returns the frames of a segment and its context.
  func context(of segment: Int64) -> Range<Int64> { frames(of: segment, around: Int64(grid.contextHops)) }

  /// Returns the frames of a stretch.
  func frames(ofStretch stretch: Int64) -> Range<Int64> { frames(ofStretch: stretch, around: 0) }

  /// Returns the frames of a stretch and its context.
  func context(ofStretch stretch: Int64) -> Range<Int64> {
    frames(ofStretch: stretch, around: Int64(grid.trackingHops))
  }

  private func frames(ofStretch stretch: Int64, around context: Int64) -> Range<Int64> {
    let first = max(firstFrame, grid.start(ofStretch: stretch) - context)
    let end = grid.start(ofStretch: stretch + 1) + context
    return first..<max(first, min(end, endFrame ?? end))
  }

  private func frames(of segment: Int64, around context: Int64) -> Range<Int64> {
    let size = Int64(grid.segmentHops)
    let first = max(firstFrame, segment * size - context), end = (segment + 1) * size + context
    return first..<max(first, min(end, endFrame ?? end))
  }
}
