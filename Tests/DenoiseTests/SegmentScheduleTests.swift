import Randomness
import Testing

@testable import Denoise

@Suite struct SegmentScheduleTests {
  private typealias Task = SegmentSchedule.Task

  /// The tasks of a recording, run on several threads: begun by any, and ended in any order.
  private struct Run {
    var schedule: SegmentSchedule
    let grid: SegmentGrid
    /// The number of frames in the rings.
    let kept: Int64
    /// The first segment that isn't computed.
    var oldest: Int64
    var running: [Task] = []
    var analyzed: Set<Int64> = []
    let isTracked: Bool
    var tracked: Set<Int64> = []
    /// The first frame that the stretch being tracked reads.
    var pending: Int64?
    var output: [Int64] = []

    /// Begins a task, after checking that what it reads is there and what it overwrites isn't needed.
    mutating func begin(prefersSegments: Bool) -> Bool {
      guard let task = schedule.begin(prefersSegments: prefersSegments) else { return false }
      switch task {
      case .block(let block):
        #expect(
          (block + 1) * Int64(grid.blockHops) - kept <= oldest * Int64(grid.segmentHops) - Int64(grid.contextHops))
        if let pending { #expect((block + 1) * Int64(grid.blockHops) - kept <= pending) }
        for case .block(let other) in running { #expect((block + 1 - other) * Int64(grid.blockHops) <= kept) }
      case .stretch(let stretch):
        #expect(schedule.context(ofStretch: stretch).allSatisfy(analyzed.contains))
        pending = schedule.context(ofStretch: stretch).lowerBound / 4 * 4
      case .segment(let segment):
        #expect(segment == oldest && schedule.context(of: segment).allSatisfy(analyzed.contains))
        #expect(!isTracked || schedule.context(of: segment).allSatisfy(tracked.contains))
      }
      running.append(task)
      return true
    }

    mutating func end(_ index: Int) {
      let task = running.remove(at: index)
      switch task {
      case .block(let block):
        let size = Int64(grid.blockHops)
        analyzed.formUnion(block * size..<(block + 1) * size)
      case .stretch(let stretch):
        tracked.formUnion(schedule.frames(ofStretch: stretch))
        pending = nil
      case .segment: oldest += 1
      }
      schedule.end(task)
    }

    mutating func outputSegment() -> Bool {
      guard let segment = schedule.finishedSegment else { return false }
      #expect(segment < oldest)
      output.append(segment)
      schedule.releaseSegment()
      return true
    }
  }

  @Test(
    "whatever the order of tasks, each finds its input, none overwrites what another needs, and all are done",
    arguments: [
      (1, 48000, 2, false), (2, 48000, 2, false), (2, 192_000, 2, false), (2, 768_000, 32, false),
      (1, 48000, 2, true), (2, 48000, 2, true), (1, 192_000, 2, true), (2, 192_000, 2, true), (2, 768_000, 32, true),
      (1, 48000, 6, true), (2, 48000, 6, true),
    ], [Int64(0), 1, 700])
  func orders(_ recording: (threads: Int, sampleRate: Int, channels: Int, isTracked: Bool), first: Int64) {
    let (threads, sampleRate, channels, isTracked) = recording
    let grid = SegmentGrid(frame: AnalysisFrame(sampleRate: sampleRate), channels: channels, isTracked: isTracked)
    let segment = Int64(grid.segmentHops), block = Int64(grid.blockHops)
    for turn in 0..<40 {
      var random = TestRandom(for: turn)
      // All segments in the first half of the turns, then one to three of them.
      let from = first / segment + (turn < 20 ? 0 : Int64(turn % 4))
      let segments = from..<(turn < 20 ? .max / segment : from + Int64.random(in: 1...3, using: &random))
      let needed = turn < 20 ? first..<(.max) : grid.frames(for: segments).clamped(to: 0..<(.max))
      let endFrame = min(needed.lowerBound + Int64.random(in: 1...1500, using: &random), needed.upperBound)
      var run = Run(
        schedule: SegmentSchedule(
          grid: grid, isShared: threads > 1, startingAt: needed.lowerBound, segments: segments),
        grid: grid, kept: Int64(grid.keptFrames(isShared: threads > 1)), oldest: from, isTracked: isTracked)
      var steps = 0
      while !run.schedule.isFinished && steps < 100_000 {
        steps += 1
        if run.schedule.nextBlock * block < endFrame, run.schedule.hasRoom, Bool.random(using: &random) {
          if (run.schedule.nextBlock + 1) * block >= endFrame { run.schedule.end(before: endFrame) }
          run.schedule.acceptBlock()
        } else if !run.outputSegment() {
          let isBusy = run.running.count == threads || Bool.random(using: &random)
          if isBusy || !run.begin(prefersSegments: Bool.random(using: &random)), !run.running.isEmpty {
            run.end(Int.random(in: run.running.indices, using: &random))
          }
        }
      }
      let end = min(segments.upperBound, (endFrame - 1) / segment + 1)
      #expect(run.output == Array(from..<max(from, end)))
    }
  }

  @Test(arguments: [true, false])
  func aThreadBeginsTheTaskThatItPrefers(prefersSegments: Bool) {
    let grid = SegmentGrid(frame: AnalysisFrame(sampleRate: 48000), channels: 2)
    var schedule = SegmentSchedule(grid: grid, isShared: true, startingAt: 0, segments: 0..<(.max))
    for block in 0..<Int64(10) {
      schedule.acceptBlock()
      #expect(schedule.begin(prefersSegments: true) == .block(block))
      schedule.end(.block(block))
    }
    schedule.acceptBlock()
    #expect(schedule.begin(prefersSegments: prefersSegments) == (prefersSegments ? .segment(0) : .block(10)))
  }
}
