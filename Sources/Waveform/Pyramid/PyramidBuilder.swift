/// Receives a builder's points, in the order in which they are made.
protocol PointSink: ~Copyable {
  /// Stores point `index` of `level`, which covers `frames` frames: the exact sums of each lane.
  mutating func put(_ sums: Span<PointSums>, frames: Int64, level: Int, index: Int64) throws(WaveformError)
}

/// Turns interleaved 16-bit samples into the points of all levels.
///
/// This works like incrementing a binary number: a point of level n waits for its neighbor, and the two form a point of
/// level n + 1. All sums are exact, so the result doesn't depend on how the recording is split into appends, or into
/// segments that are built apart.
struct PyramidBuilder: Sendable {
  let layout: PyramidLayout
  private(set) var framesAppended: Int64 = 0
  /// The point being filled, one per lane. `openFrames` is its number of frames so far.
  private var open: [PointSums]
  private var openFrames = 0
  /// For each level n, the first point of a pair while it waits for the second: `waiting[n * lanes ..< (n + 1) *
  /// lanes]`.
  private var waiting: [PointSums]
  /// Number of points made so far at each level.
  private var made = [Int64](repeating: 0, count: PyramidLayout.levels)
  private let loops = PeakLoops.best

  init(layout: PyramidLayout) {
    self.layout = layout
    open = [PointSums](repeating: PointSums(), count: layout.lanes)
    waiting = [PointSums](repeating: PointSums(), count: layout.lanes * PyramidLayout.levels)
  }

  /// Appends any number of whole interleaved frames.
  mutating func append(_ samples: Span<Int16>, to sink: inout some PointSink & ~Copyable) throws(WaveformError) {
    let channels = layout.channels
    guard samples.count % channels == 0 else {
      throw .unevenSamples(count: samples.count, channels: channels)
    }
    let frames = samples.count / channels
    try checkRoom(Int64(frames))
    var frame = 0
    while frame < frames {
      let count = min(PeakKernel.pointFrames - openFrames, frames - frame)
      add(samples.extracting(frame * channels..<(frame + count) * channels), frames: count)
      frame += count
      framesAppended += Int64(count)
      if openFrames == PeakKernel.pointFrames { try closePoint(to: &sink) }
    }
  }

  private func checkRoom(_ frames: Int64) throws(WaveformError) {
    guard frames <= PyramidLayout.frameLimit - framesAppended else {
      throw .tooManyFrames(limit: PyramidLayout.frameLimit)
    }
  }

  /// Appends a lower block whose points of the lower levels the sink already has, at a block's boundary.
  ///
  /// `sums`: the block's own sums, one per lane.
  mutating func append(block sums: Span<PointSums>, to sink: inout some PointSink & ~Copyable) throws(WaveformError) {
    precondition(framesAppended % PyramidLayout.blockFrames == 0, "a block begins at a block's boundary")
    try checkRoom(PyramidLayout.blockFrames)
    framesAppended += PyramidLayout.blockFrames
    for level in 0..<PyramidLayout.levelsPerBlock { made[level] += 256 >> Int64(level) }
    for lane in open.indices { open[lane] = sums[lane] }
    try closePoint(level: PyramidLayout.levelsPerBlock, to: &sink)
  }

  /// Appends the beginning of a block from a builder that began at a block's boundary, at the same place in a block.
  /// The sink already has its points.
  mutating func append(restOf other: PyramidBuilder) throws(WaveformError) {
    precondition(framesAppended % PyramidLayout.blockFrames == 0, "a block begins at a block's boundary")
    let frames = other.framesAppended % PyramidLayout.blockFrames
    try checkRoom(frames)
    framesAppended += frames
    for level in 0..<PyramidLayout.levelsPerBlock { made[level] += other.made[level] % (256 >> Int64(level)) }
    for index in 0..<PyramidLayout.levelsPerBlock * layout.lanes { waiting[index] = other.waiting[index] }
    (open, openFrames) = (other.open, other.openFrames)
  }

  /// Makes the last, partial point of each level.
  ///
  /// Each contains the sums of its actual frames only.
  mutating func finish(to sink: inout some PointSink & ~Copyable) throws(WaveformError) {
    let lanes = layout.lanes
    // `open` becomes the remainder at each level; `frames` is its number of frames.
    var frames = Int64(openFrames)
    if frames > 0 { try emit(level: 0, frames: frames, to: &sink) }
    for level in 0..<PyramidLayout.levels - 1 {
      // A remainder at this level was emitted above, so an odd count of full points means that one is waiting.
      let leftOver = frames > 0
      let waits = (made[level] - (leftOver ? 1 : 0)) % 2 == 1
      if waits {
        for lane in 0..<lanes { open[lane].merge(waiting[level * lanes + lane]) }
        frames += Int64(PeakKernel.pointFrames) << Int64(level)
      }
      if frames > 0 { try emit(level: level + 1, frames: frames, to: &sink) }
    }
    openFrames = 0
  }

  private mutating func add(_ samples: Span<Int16>, frames: Int) {
    let channels = layout.channels
    defer { openFrames += frames }
    guard frames == PeakKernel.pointFrames else {
      PeakKernel.addFrames(samples, channels: channels, to: &open, at: channels == 1 ? 0 : 1)
      guard channels > 1 else { return }
      var mix = InlineArray<256, Int16>(repeating: 0)
      PeakKernel.downmix(samples, channels: channels, to: &mix)
      return PeakKernel.addFrames(mix.span.extracting(0..<frames), channels: 1, to: &open, at: 0)
    }
    // Nothing is open before a whole point.
    switch channels {
    case 1: open[0] = loops.mono(samples)
    case 2:
      let sums = loops.stereo(samples)
      for lane in 0..<3 { open[lane] = sums[lane] }
    default:
      PeakKernel.addPoint(samples, channels: channels, to: &open, at: 1)
      var mix = InlineArray<256, Int16>(repeating: 0)
      PeakKernel.downmix(samples, channels: channels, to: &mix)
      open[0] = loops.mono(mix.span)
    }
  }

  /// Emits the full point of a level and every pair that it completes.
  private mutating func closePoint(
    level first: Int = 0, to sink: inout some PointSink & ~Copyable
  ) throws(WaveformError) {
    let lanes = layout.lanes
    var level = first
    var frames = Int64(PeakKernel.pointFrames) << Int64(level)
    try emit(level: level, frames: frames, to: &sink)
    while level < PyramidLayout.levels - 1 {
      let base = level * lanes
      guard made[level] % 2 == 0 else {
        for lane in 0..<lanes { waiting[base + lane] = open[lane] }
        break
      }
      for lane in 0..<lanes { open[lane].merge(waiting[base + lane]) }
      level += 1
      frames *= 2
      try emit(level: level, frames: frames, to: &sink)
    }
    for lane in 0..<lanes { open[lane] = PointSums() }
    openFrames = 0
  }

  @inline(__always)
  private mutating func emit(
    level: Int, frames: Int64, to sink: inout some PointSink & ~Copyable
  ) throws(WaveformError) {
    try sink.put(open.span, frames: frames, level: level, index: made[level])
    made[level] += 1
  }
}
