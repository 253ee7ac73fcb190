/// Writes a recording's pyramid to a file that can be read while it grows.
///
/// Append the recording in order, report `readyFrames` to readers from time to time, and call `finish()`. Not
/// thread-safe: it belongs to the thread that decodes.
package struct PyramidWriter: ~Copyable {
  private var builder: PyramidBuilder
  private var output: PyramidOutput

  /// Creates the file with a header of unknown length.
  ///
  /// Unlinks any existing file of that name instead of overwriting it. Throws `.unsupportedFormat` or `.io`.
  package init(creating path: String, sampleRate: Int, channels: Int) throws(WaveformError) {
    let layout = try PyramidLayout(sampleRate: sampleRate, channels: channels)
    let file = try WrittenFile(creating: path)
    try file.write(layout.header(totalFrames: nil).span, at: 0)
    builder = PyramidBuilder(layout: layout)
    output = PyramidOutput(layout: layout, file: file)
  }

  /// Appends any number of whole interleaved frames, split anywhere between frames.
  ///
  /// Throws `.unevenSamples`, `.tooManyFrames`, or `.io`. Blocks while writing the file. After an error the file is
  /// unusable.
  package mutating func append(_ samples: Span<Int16>) throws(WaveformError) {
    try builder.append(samples, to: &output)
    try output.flushIfDue()
  }

  /// Number of frames appended so far.
  package var framesAppended: Int64 { builder.framesAppended }

  /// Frames whose points are visible to readers: a multiple of 256 until the writer has finished, never decreasing.
  ///
  /// At most 32 points (8192 frames) behind the frames appended, after any `append`.
  package var readyFrames: Int64 { min(output.readyPoints * 256, builder.framesAppended) }

  /// Writes the partial points, then the frame count into the header, and waits until everything is on disk.
  ///
  /// The count is written last, after an fsync, so a file that claims to be complete is complete.
  package mutating func finish() throws(WaveformError) {
    try builder.finish(to: &output)
    try output.finish(totalFrames: builder.framesAppended)
  }
}

/// The blocks being filled, and their file.
struct PyramidOutput: ~Copyable, PointSink {
  /// Number of points after which the end of an append triggers a flush: often enough for a live view, rarely enough to
  /// cost nothing.
  private static let flushPoints: Int64 = 32

  private let layout: PyramidLayout
  private let file: WrittenFile
  private var lower: OpenBlock
  private var upper: OpenBlock
  private var points: Int64 = 0
  /// Number of points of level 0 that are in the file along with all points above them.
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

  /// Writes the current blocks if enough points have accumulated.
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

  /// Points written earlier are rewritten with the same bytes, so a reader never sees them change. The upper block
  /// changes only twice while a lower one is filled.
  private mutating func flush() throws(WaveformError) {
    try upper.write(to: file, layout)
    try lower.write(to: file, layout)
    readyPoints = points
  }
}

/// A block being filled: one page per lane, in a row as in the file.
private struct OpenBlock {
  private let isUpper: Bool
  private var words: [UInt64]
  private(set) var index: Int64 = 0
  /// Whether it has points that are not in the file.
  var isChanged = false
  /// Whether its last point was made, so that it is written with checksums.
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
    // The last point of its coarsest level is the last of all.
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
