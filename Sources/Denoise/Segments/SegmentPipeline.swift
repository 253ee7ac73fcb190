import Dispatch
import Synchronization
import Terms

/// Runs the tasks of SegmentSchedule on the thread that brings the sound, and on a second one if wanted.
///
/// Any thread runs any task. The arithmetic and its order are the same, so the bits are too. The first thread runs
/// tasks only if it can neither read nor write, and prefers blocks, which take less time than segments.
final class SegmentPipeline: @unchecked Sendable {  // see `sums`
  private struct Shared {
    var schedule: SegmentSchedule
    /// Blocks that wait to be analyzed, oldest first.
    var blocks: [FrameBlock] = []
    /// Blocks whose memory can be used for others.
    var spares: [FrameBlock] = []
    /// Whether the second thread runs tasks.
    var isRunning = false
    /// Whether the first thread waits for the second to end a task.
    var isAwaited = false
    /// Whether the noise has changed in a tracked stretch.
    var hasNoiseChanged = false
  }

  /// A task with its input.
  private enum Work {
    case analysis(SegmentSchedule.Task, of: FrameBlock)
    case tracking(SegmentSchedule.Task, of: Range<Int64>, context: Range<Int64>)
    case synthesis(SegmentSchedule.Task, of: Int64, Range<Int64>, context: Range<Int64>)
  }

  private let analysis: FrameAnalysis
  private let onsetFinder: OnsetFinder
  /// With the space of the stretch that is being tracked; nil if the noise stays what was learned.
  private let tracking: (tracker: NoiseTracker, space: TrackingSpace)?
  private let gainRule: SegmentGains
  private let synthesis: Synthesis
  private let rows: FrameRows
  private let shared: Mutex<Shared>
  /// The sums of segments, by their number. Each is used by the task that computes the segment, then by the first
  /// thread until it's released.
  private let sums: [RowRing]
  private let workspace: Workspace
  /// The space of the second thread, if there is one.
  private let second: Workspace?
  private let hasEndedTask = DispatchSemaphore(value: 0)

  init(
    grid: SegmentGrid, frame: AnalysisFrame, channels: Int, noise: FrameNoise, gainRule: SegmentGains,
    tracker: NoiseTracker?, startingAt first: Int64, segments: Range<Int64>, usesSecondThread: Bool
  ) {
    onsetFinder = OnsetFinder(frame: frame, channels: channels)
    analysis = FrameAnalysis(
      frame: frame, channels: channels, noise: noise, cepstralPrior: gainRule.cepstralPrior, onsetFinder: onsetFinder,
      isTracked: tracker != nil)
    tracking = tracker.map { ($0, TrackingSpace(frame: frame, grid: grid)) }
    self.gainRule = gainRule
    synthesis = Synthesis(frame: frame, channels: channels, isResidue: gainRule.isResidue)
    rows = FrameRows(
      frame: frame, channels: channels, count: grid.keptFrames(isShared: usesSecondThread),
      segmentHops: grid.segmentHops, isTracked: tracker != nil)
    shared = Mutex(
      Shared(
        schedule: SegmentSchedule(grid: grid, isShared: usesSecondThread, startingAt: first, segments: segments)))
    sums = (0..<(usesSecondThread ? 2 : 1)).map { _ in
      RowRing(width: (grid.segmentHops + 3) * frame.hop, count: channels)
    }
    workspace = Workspace(frame: frame)
    second = usesSecondThread ? Workspace(frame: frame) : nil
  }

  // MARK: For the first thread

  /// Whether the next block may be accepted.
  var hasRoom: Bool { shared.withLock { $0.schedule.hasRoom } }

  /// Returns a block whose memory can be used for another, if there is one.
  func takeSpare() -> FrameBlock? { shared.withLock { $0.spares.popLast() } }

  /// Accepts the next block, which is full. Its memory now belongs to the pipeline.
  func accept(_ block: FrameBlock) {
    shared.withLock { shared in
      shared.schedule.acceptBlock()
      shared.blocks.append(block)
    }
    wakeSecond()
  }

  /// Ends the recording before a frame of the last accepted block.
  func end(before frame: Int64) {
    shared.withLock { $0.schedule.end(before: frame) }
    wakeSecond()
  }

  var isFinished: Bool { shared.withLock { $0.schedule.isFinished } }

  /// Whether the noise has changed in a tracked stretch.
  var hasNoiseChanged: Bool { shared.withLock { $0.hasNoiseChanged } }

  /// Passes on the frames and the sums of the next segment; see Synthesis. Returns false if it isn't finished.
  func takeSegment<E: Error>(_ body: (Range<Int64>, RowRing) throws(E) -> Void) throws(E) -> Bool {
    let finished = shared.withLock { shared in
      shared.schedule.finishedSegment.map { ($0, shared.schedule.frames(of: $0)) }
    }
    guard let (segment, frames) = finished else { return false }
    try body(frames, sums[Int(segment) % sums.count])
    shared.withLock { $0.schedule.releaseSegment() }
    wakeSecond()
    return true
  }

  /// Runs a task on this thread. Returns false if none is ready.
  func runTask() -> Bool {
    let work = shared.withLock { Self.begin(&$0, prefersSegments: second == nil) }
    guard let work else { return false }
    run(work, workspace)
    wakeSecond()
    return true
  }

  /// Waits for the second thread to end a task, or to have nothing more to do.
  func waitForSecond() {
    let waits = shared.withLock { shared in
      shared.isAwaited = shared.isRunning
      return shared.isRunning
    }
    if waits { hasEndedTask.wait() }
  }

  // MARK: On any thread

  private static func begin(_ shared: inout Shared, prefersSegments: Bool) -> Work? {
    guard let task = shared.schedule.begin(prefersSegments: prefersSegments) else { return nil }
    switch task {
    case .block: return .analysis(task, of: shared.blocks.removeFirst())
    case .stretch(let stretch):
      return .tracking(
        task, of: shared.schedule.frames(ofStretch: stretch), context: shared.schedule.context(ofStretch: stretch))
    case .segment(let segment):
      return .synthesis(
        task, of: segment, shared.schedule.frames(of: segment), context: shared.schedule.context(of: segment))
    }
  }

  private func run(_ work: Work, _ workspace: Workspace) {
    switch work {
    case .analysis(let task, let block):
      analysis.analyse(block, into: rows, workspace)
      shared.withLock { shared in
        shared.schedule.end(task)
        shared.spares.append(block)
      }
    case .tracking(let task, let own, let context):
      let hasChanged = tracking.map { $0.tracker.follow(own, context: context, rows, $0.space) } ?? false
      analysis.analyseCepstra(own, rows, workspace)
      shared.withLock { shared in
        shared.schedule.end(task)
        shared.hasNoiseChanged = shared.hasNoiseChanged || hasChanged
      }
    case .synthesis(let task, let segment, let own, let context):
      let onsets = onsetFinder.onsets(in: context, rows.onsets)
      gainRule.compute(own, context: context, around: onsets, rows, workspace)
      synthesis.add(own, around: onsets, rows, workspace, into: sums[Int(segment) % sums.count])
      shared.withLock { $0.schedule.end(task) }
    }
  }

  // MARK: The second thread

  /// Starts the second thread if it isn't running and there is something to do.
  private func wakeSecond() {
    guard let second else { return }
    let work = shared.withLock { shared -> Work? in
      guard !shared.isRunning, let work = Self.begin(&shared, prefersSegments: true) else { return nil }
      shared.isRunning = true
      return work
    }
    guard let work else { return }
    if !Threads.shared.run({ [self] in runTasks(from: work, second) }) { runTasks(from: work, second) }
  }

  private func runTasks(from first: Work, _ workspace: Workspace) {
    var next: Work? = first
    while let work = next {
      run(work, workspace)
      let (following, isAwaited) = shared.withLock { shared in
        let work = Self.begin(&shared, prefersSegments: true)
        shared.isRunning = work != nil
        defer { shared.isAwaited = false }
        return (work, shared.isAwaited)
      }
      next = following
      if isAwaited { hasEndedTask.signal() }
    }
  }
}
