/// Writes a recording's pyramid into a file that may be read while it grows.
///
/// Append the recording in order, tell readers `readyFrames` now and then, and `finish()`. Not thread-safe by itself:
/// it belongs to the one who decodes.
package struct PyramidWriter: ~Copyable {
  private var builder: PyramidBuilder
  private var output: PyramidOutput

  /// Makes the file, with a header that says the recording's length is unknown.
  ///
  /// An older file of that name is unlinked, not overwritten. Throws `.unsupportedFormat` or `.io`.
  package init(creating path: String, sampleRate: Int, channels: Int) throws(WaveformError) {
    let layout = try PyramidLayout(sampleRate: sampleRate, channels: channels)
    let file = try WrittenFile(creating: path)
    try file.write(layout.header(totalFrames: nil).span, at: 0)
    builder = PyramidBuilder(layout: layout)
    output = PyramidOutput(layout: layout, file: file)
  }

  /// Appends whole frames: interleaved, any number of them, split anywhere between frames.
  ///
  /// Throws `.unevenSamples`, `.tooManyFrames`, or `.io` (blocks while the file is written); after a throw the file is
  /// of no further use.
  package mutating func append(_ samples: Span<Int16>) throws(WaveformError) {
    try builder.append(samples, to: &output)
    try output.flushIfDue()
  }

  /// All frames appended so far.
  package var framesAppended: Int64 { builder.framesAppended }

  /// Frames whose points a reader can see now: a multiple of 256 until the writer has finished, never falling.
  ///
  /// At most 32 points (8192 frames) behind what was appended, after any `append`.
  package var readyFrames: Int64 { min(output.readyPoints * 256, builder.framesAppended) }

  /// Writes the partial points, then the true frame count into the header, and waits until all is on the disk.
  ///
  /// The count is written last and after an fsync of its own: a file that claims to be whole is whole.
  package mutating func finish() throws(WaveformError) {
    try builder.finish(to: &output)
    try output.finish(totalFrames: builder.framesAppended)
  }
}

/// The blocks that are being filled, and the file behind them.
struct PyramidOutput: ~Copyable, PointSink {
  /// Points after which a flush is due at the end of an append: often enough for a live view, seldom enough to be free.
  private static let flushPoints: Int64 = 32

  private let layout: PyramidLayout
  private let file: WrittenFile
  private var lower: OpenBlock
  private var upper: OpenBlock
  private var points: Int64 = 0
  /// Points of level 0 that are in the file with all that is above them.
  private(set) var readyPoints: Int64 = 0

  init(layout: PyramidLayout, file: consuming WrittenFile) {
    self.layout = layout
    self.file = file
    lower = OpenBlock(isUpper: false, lanes: layout.lanes)
    upper = OpenBlock(isUpper: true, lanes: layout.lanes)
  }

  mutating func put(_ point: Span<UInt64>, level: Int, index: Int64) throws(WaveformError) {
    let block = PyramidLayout.block(level: level, point: index)
    guard level < PyramidLayout.levelsPerBlock else {
      if block != upper.index { upper.begin(block) }
      return upper.put(point, level: level, index: index)
    }
    if level == 0 {
      if block != lower.index {
        if readyPoints < points { try flush() }
        lower.begin(block)
      }
      points = index + 1
    }
    lower.put(point, level: level, index: index)
  }

  /// Writes the blocks so far where enough points have come together.
  mutating func flushIfDue() throws(WaveformError) {
    if points - readyPoints >= Self.flushPoints { try flush() }
  }

  mutating func finish(totalFrames: Int64) throws(WaveformError) {
    if points > 0 {
      (lower.isFinal, lower.isChanged, upper.isFinal, upper.isChanged) = (true, true, true, true)
      try flush()
    }
    try file.synchronize()
    try file.write(layout.header(totalFrames: totalFrames).span, at: 0)
    try file.synchronize()
  }

  /// Points written before are written again with the same bytes: a reader never sees them change. The upper block
  /// changes twice in a lower one's time.
  private mutating func flush() throws(WaveformError) {
    try upper.write(to: file, layout)
    try lower.write(to: file, layout)
    readyPoints = points
  }
}

/// A block that is being filled: a page for each lane, one after the other as in the file.
private struct OpenBlock {
  private let isUpper: Bool
  private var words: [UInt64]
  private(set) var index: Int64 = 0
  /// Whether there are points that are not in the file.
  var isChanged = false
  /// Whether its last point is made: it is written with its checksums.
  var isFinal = false

  init(isUpper: Bool, lanes: Int) {
    self.isUpper = isUpper
    words = [UInt64](repeating: 0, count: lanes * PyramidLayout.pageWords)
  }

  mutating func begin(_ index: Int64) {
    precondition(!isChanged, "a block is written before the next is begun")
    self.index = index
    isFinal = false
    for word in words.indices { words[word] = 0 }
  }

  mutating func put(_ point: Span<UInt64>, level: Int, index: Int64) {
    let word = PyramidLayout.word(level: level, point: index)
    for lane in 0..<point.count { words[lane * PyramidLayout.pageWords + word] = point[lane] }
    isChanged = true
    // The last of its coarsest level is the last of all.
    if word == PyramidLayout.blockPoints - 1 { isFinal = true }
  }

  mutating func write(to file: borrowing WrittenFile, _ layout: PyramidLayout) throws(WaveformError) {
    guard isChanged else { return }
    let first = layout.page(upper: isUpper, block: index)
    if isFinal { PyramidLayout.seal(&words, from: first) }
    try file.write(words.span, at: first * Int64(PyramidLayout.pageWords))
    isChanged = false
  }
}
