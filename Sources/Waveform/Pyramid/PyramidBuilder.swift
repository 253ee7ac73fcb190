/// Receives a builder's points, in the order in which they are made.
protocol PointSink: ~Copyable {
  /// Stores point `index` of `level`: one word per lane.
  mutating func put(_ point: Span<UInt64>, level: Int, index: Int64) throws(WaveformError)
}

/// Turns interleaved 16-bit samples into the points of all levels.
///
/// This works like incrementing a binary number: a point of level n waits for its neighbor, and the two form a point of
/// level n + 1. All sums are exact, so the result doesn't depend on how the recording is split into appends.
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
  private var words: [UInt64]
  private var stereo = StereoPoint()

  init(layout: PyramidLayout) {
    self.layout = layout
    open = [PointSums](repeating: PointSums(), count: layout.lanes)
    waiting = [PointSums](repeating: PointSums(), count: layout.lanes * PyramidLayout.levels)
    words = [UInt64](repeating: 0, count: layout.lanes)
  }

  /// Appends any number of whole interleaved frames.
  mutating func append(_ samples: Span<Int16>, to sink: inout some PointSink & ~Copyable) throws(WaveformError) {
    let channels = layout.channels
    guard samples.count % channels == 0 else {
      throw .unevenSamples(count: samples.count, channels: channels)
    }
    let frames = samples.count / channels
    guard Int64(frames) <= PyramidLayout.frameLimit - framesAppended else {
      throw .tooManyFrames(limit: PyramidLayout.frameLimit)
    }
    var frame = 0
    while frame < frames {
      let count = min(PeakKernel.pointFrames - openFrames, frames - frame)
      add(samples.extracting(frame * channels..<(frame + count) * channels), frames: count)
      frame += count
      framesAppended += Int64(count)
      if openFrames == PeakKernel.pointFrames { try closePoint(to: &sink) }
    }
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
    switch channels {
    case 1: PeakKernel.addPoint(samples, channels: 1, to: &open, at: 0)
    case 2: stereo.add(samples, to: &open)
    default:
      PeakKernel.addPoint(samples, channels: channels, to: &open, at: 1)
      var mix = InlineArray<256, Int16>(repeating: 0)
      PeakKernel.downmix(samples, channels: channels, to: &mix)
      PeakKernel.addPoint(mix.span, channels: 1, to: &open, at: 0)
    }
  }

  /// Emits the full point and every pair that it completes.
  private mutating func closePoint(to sink: inout some PointSink & ~Copyable) throws(WaveformError) {
    let lanes = layout.lanes
    var level = 0
    var frames = Int64(PeakKernel.pointFrames)
    try emit(level: 0, frames: frames, to: &sink)
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

  private mutating func emit(
    level: Int, frames: Int64, to sink: inout some PointSink & ~Copyable
  ) throws(WaveformError) {
    let share = 1 / Double(frames)
    let isWhole = frames.nonzeroBitCount == 1
    for lane in 0..<layout.lanes {
      let point = isWhole ? open[lane].point(share: share) : open[lane].point(frames: frames)
      words[lane] = point.word.littleEndian
    }
    try sink.put(words.span, level: level, index: made[level])
    made[level] += 1
  }
}
