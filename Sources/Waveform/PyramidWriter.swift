/// Writes a recording's pyramid into a file that may be read while it grows.
///
/// Append the recording in order, tell readers `readyFrames` now and then, and `finish()`. Not thread-safe by itself: it
/// belongs to the one who decodes.
public struct PyramidWriter: ~Copyable {
  private var builder: PyramidBuilder
  private var output: PyramidOutput

  /// Makes the file, with a header that says the recording's length is unknown.
  ///
  /// An older file of that name is unlinked, not overwritten. Throws `.unsupportedFormat` or `.io`.
  public init(creating path: String, sampleRate: Int, channels: Int) throws(WaveformError) {
    let layout = try PyramidLayout(sampleRate: sampleRate, channels: channels)
    let file = try WrittenFile(creating: path)
    let header = layout.header(totalFrames: nil).map(\.littleEndian)
    let zeros = [UInt64](repeating: 0, count: Int(PyramidLayout.headerWords) - header.count)
    try file.write((header + zeros).span, at: 0)
    builder = PyramidBuilder(layout: layout)
    output = PyramidOutput(layout: layout, file: file)
  }

  /// Appends whole frames: interleaved, any number of them, split anywhere between frames.
  ///
  /// Throws `.unevenSamples`, `.tooManyFrames`, or `.io` (blocks while the file is written); after a throw the file is
  /// of no further use.
  public mutating func append(_ samples: Span<Int16>) throws(WaveformError) {
    try builder.append(samples, to: &output)
    try output.flushIfDue()
  }

  /// All frames appended so far.
  public var framesAppended: Int64 { builder.framesAppended }

  /// Frames whose points a reader can see now: a multiple of 256 until the writer has finished, never falling.
  ///
  /// At most 32 points (8192 frames) behind what was appended, after any `append`.
  public var readyFrames: Int64 { min(output.readyPoints * 256, builder.framesAppended) }

  /// Writes the partial points, then the true frame count into the header, and waits until all is on the disk.
  ///
  /// The count is written last and after an fsync of its own: a file that claims to be whole is whole.
  public mutating func finish() throws(WaveformError) {
    try builder.finish(to: &output)
    try output.finish(totalFrames: builder.framesAppended)
  }
}

/// The block that is being filled, and the file behind it.
struct PyramidOutput: ~Copyable, PointSink {
  /// Points after which a flush is due at the end of an append: often enough for a live view, seldom enough to be free.
  private static let flushPoints: Int64 = 32

  private let layout: PyramidLayout
  private let file: WrittenFile
  /// The lower block that is being filled, whole.
  private var block: [UInt64]
  private var blockIndex: Int64 = 0
  private var points: Int64 = 0
  /// Points of level 0 that are in the file with all that is above them.
  private(set) var readyPoints: Int64 = 0

  init(layout: PyramidLayout, file: consuming WrittenFile) {
    self.layout = layout
    self.file = file
    block = [UInt64](repeating: 0, count: Int(layout.blockWords))
  }

  mutating func put(_ point: Span<UInt64>, level: Int, index: Int64) throws(WaveformError) {
    let position = layout.word(level: level, point: index)
    guard level < PyramidLayout.levelsPerBlock else {
      // Two in a lower block's time: not worth a buffer.
      return try file.write(point, at: position)
    }
    if level == 0 {
      if index >> 8 != blockIndex { try startBlock(index >> 8) }
      points = index + 1
    }
    let base = Int(position - layout.block(upper: false, blockIndex))
    for lane in 0..<point.count { block[base + lane] = point[lane] }
  }

  /// Writes the block so far where enough points have come together.
  mutating func flushIfDue() throws(WaveformError) {
    if points - readyPoints >= Self.flushPoints { try flush() }
  }

  mutating func finish(totalFrames: Int64) throws(WaveformError) {
    if points > 0 { try flush() }
    try file.synchronize()
    let header = layout.header(totalFrames: totalFrames).map(\.littleEndian)
    try file.write(header.span, at: 0)
    try file.synchronize()
  }

  private mutating func startBlock(_ index: Int64) throws(WaveformError) {
    if readyPoints < points { try flush() }
    blockIndex = index
    for word in block.indices { block[word] = 0 }
  }

  /// Points written before are written again with the same bytes: a reader never sees them change.
  private mutating func flush() throws(WaveformError) {
    try file.write(block.span, at: layout.block(upper: false, blockIndex))
    readyPoints = points
  }
}
