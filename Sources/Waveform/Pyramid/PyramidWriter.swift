/// Writes a recording's pyramid to a file that can be read while it grows.
///
/// Append the recording in order, `publish()` from time to time and report `readyFrames` to readers, and call
/// `finish()`. Not thread-safe.
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
  /// Throws `.unevenSamples`, `.tooManyFrames`, or `.io`. Blocks while writing the file, which it does about every
  /// quarter of a megabyte. After an error the file is unusable.
  package mutating func append(_ samples: Span<Int16>) throws(WaveformError) {
    try builder.append(samples, to: &output)
  }

  /// Appends the next segment, whose points were built apart, and publishes it. Everything appended before must end
  /// where the segment begins. Throws `.tooManyFrames` or `.io`.
  package mutating func append(_ part: PyramidPart) throws(WaveformError) {
    precondition(
      part.firstBlock * PyramidLayout.blockFrames == builder.framesAppended, "segments are appended in order")
    try output.put(part)
    let lanes = builder.layout.lanes
    for start in stride(from: 0, to: part.sums.count, by: lanes) {
      try builder.append(block: part.sums.span.extracting(start..<start + lanes), to: &output)
    }
    try builder.append(restOf: part.builder)
    try output.flush()
  }

  /// Number of frames appended so far.
  package var framesAppended: Int64 { builder.framesAppended }

  /// Frames whose points are visible to readers: a multiple of 256 until the writer has finished, never decreasing.
  package var readyFrames: Int64 { min(output.readyPoints * 256, builder.framesAppended) }

  /// Makes all points so far visible to readers: of all frames but the last 255. Throws `.io`.
  ///
  /// Costs a system call or two, so call it as often as somebody looks, not after every append.
  package mutating func publish() throws(WaveformError) { try output.flush() }

  /// Writes the partial points, then the frame count into the header, and waits until everything is on disk.
  ///
  /// The count is written last, after an fsync, so a file that claims to be complete is complete. If `isDurable` is
  /// false, doesn't wait for the disk, and the caller must do so before anyone relies on the file.
  package mutating func finish(isDurable: Bool = true) throws(WaveformError) {
    try builder.finish(to: &output)
    try output.finish(totalFrames: builder.framesAppended, isDurable: isDurable)
  }
}

/// The blocks being filled, and their file.
struct PyramidOutput: ~Copyable, PointSink {
  /// The size of a run of lower blocks, in bytes: large enough that system calls cost nothing, small enough for the
  /// second-level cache.
  private static let runBytes = 1 << 18
  private static let longestRun = 16

  private let layout: PyramidLayout
  private let file: WrittenFile
  /// Begins at a multiple of its capacity, a power of two, so that it never crosses an upper block's pages.
  private var lower: BlockRun
  private var upper: BlockRun
  /// Number of blocks of `lower`, from its first, that are in the file and final.
  private var writtenCount = 0
  private var (isLowerChanged, isUpperChanged) = (false, false)
  private var points: Int64 = 0
  /// Number of points of level 0 that are in the file along with all points above them.
  private(set) var readyPoints: Int64 = 0
  /// The end of the bytes that are on their way to the disk.
  private var startedSize: Int64 = 0

  init(layout: PyramidLayout, file: consuming WrittenFile) {
    self.layout = layout
    self.file = file
    var capacity = Self.longestRun
    while capacity > 1, capacity * layout.lanes * Int(PyramidLayout.pageBytes) > Self.runBytes { capacity /= 2 }
    lower = BlockRun(isUpper: false, lanes: layout.lanes, capacity: capacity)
    upper = BlockRun(isUpper: true, lanes: layout.lanes, capacity: 1)
  }

  @inline(__always)
  mutating func put(_ sums: Span<PointSums>, frames: Int64, level: Int, index: Int64) throws(WaveformError) {
    guard level < PyramidLayout.levelsPerBlock else {
      try putUpper(sums, frames: frames, level: level, index: index)
      return
    }
    let block = PyramidLayout.block(level: level, point: index)
    if level == 0 {
      if !lower.accepts(block) { try beginLower(block) }
      points = index + 1
    }
    isLowerChanged = true
    lower.put(sums, frames: frames, level: level, index: index)
  }

  private mutating func putUpper(
    _ sums: Span<PointSums>, frames: Int64, level: Int, index: Int64
  ) throws(WaveformError) {
    let block = PyramidLayout.block(level: level, point: index)
    if !upper.accepts(block) {
      try writeUpper()
      upper.begin(block)
    }
    isUpperChanged = true
    upper.put(sums, frames: frames, level: level, index: index)
  }

  /// Writes the last run and starts the one that contains a block. If there are blocks before it, they are in the file.
  private mutating func beginLower(_ block: Int64) throws(WaveformError) {
    try flush()
    let first = block & ~Int64(lower.capacity - 1)
    lower.begin(first)
    writtenCount = Int(block - first)
  }

  /// Writes the pages of a segment. The builder's upper points follow.
  mutating func put(_ part: PyramidPart) throws(WaveformError) {
    try flush()
    let blocks = part.sums.count / layout.lanes
    // An upper block's pages precede those of 256 lower ones.
    var done = 0
    while done < blocks {
      let block = part.firstBlock + Int64(done)
      let count = min(blocks - done, 256 - Int(block % 256))
      let words = done * lower.blockWords..<(done + count) * lower.blockWords
      try file.write(part.pages.span.extracting(words), at: position(layout.page(upper: false, block: block)))
      done += count
    }
    points = (part.firstBlock + Int64(blocks)) * 256
    startWriting()
    guard !part.restPages.isEmpty else { return }
    try beginLower(part.firstBlock + Int64(blocks))
    lower.put(part.firstBlock + Int64(blocks), pages: part.restPages)
    isLowerChanged = true
    points += part.frames % PyramidLayout.blockFrames / 256
  }

  private func position(_ page: Int64) -> Int64 { page * Int64(PyramidLayout.pageWords) }

  mutating func finish(totalFrames: Int64, isDurable: Bool) throws(WaveformError) {
    if points > 0 {
      lower.finish()
      upper.finish()
      (isLowerChanged, isUpperChanged) = (lower.count > 0, true)
      try flush()
    }
    if isDurable { try file.synchronize() }
    try file.write(layout.header(totalFrames: totalFrames).span, at: 0)
    if isDurable { try file.synchronize() }
  }

  /// Writes what isn't in the file yet. Points written earlier are rewritten with the same bytes, so a reader never
  /// sees them change.
  mutating func flush() throws(WaveformError) {
    try writeUpper()
    try writeLower()
    readyPoints = points
    startWriting()
  }

  /// Starts to write to disk what the cache has, every 4 MB, so that a durable end has little to wait for.
  private mutating func startWriting() {
    let size = layout.page(upper: false, block: points / 256) * PyramidLayout.pageBytes
    guard size - startedSize >= 4 << 20 else { return }
    file.startWriting(startedSize..<size)
    startedSize = size
  }

  private mutating func writeUpper() throws(WaveformError) {
    guard isUpperChanged else { return }
    upper.seal(layout)
    try file.write(upper.words.span, at: position(layout.page(upper: true, block: upper.first)))
    isUpperChanged = false
  }

  private mutating func writeLower() throws(WaveformError) {
    guard isLowerChanged else { return }
    lower.seal(layout)
    let words = writtenCount * lower.blockWords..<lower.count * lower.blockWords
    let page = layout.page(upper: false, block: lower.first + Int64(writtenCount))
    try file.write(lower.words.span.extracting(words), at: position(page))
    writtenCount = max(writtenCount, lower.finalCount)
    isLowerChanged = false
  }
}
