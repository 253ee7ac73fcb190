// A recording's segments can be built on several cores, because all sums are exact: a segment that begins at a lower
// block gives the same lower blocks wherever it's built. Only the upper levels need the segments in order.

/// The points of a segment of a recording that were built apart from the file.
package struct PyramidPart: Sendable {
  /// Number of frames.
  package let frames: Int64
  /// The number of its first lower block.
  let firstBlock: Int64
  /// The pages of its whole lower blocks, final.
  let pages: [UInt64]
  /// The sums of these blocks: `lanes` for each.
  let sums: [PointSums]
  /// The builder after the last frame, for the block that isn't whole.
  let builder: PyramidBuilder
  /// The pages of the block that isn't whole; empty if all are.
  let restPages: [UInt64]
}

/// Builds the points of one segment after another. Not thread-safe.
package struct PyramidPartBuilder: Sendable {
  /// Segments begin at multiples of this many frames.
  package static let alignment = PyramidLayout.blockFrames

  private let layout: PyramidLayout
  private var builder: PyramidBuilder
  private var blocks: PartBlocks
  private var firstBlock: Int64 = 0

  /// Creates a builder for segments of at most `frames` frames, a multiple of `alignment`. Throws `.unsupportedFormat`.
  package init(sampleRate: Int, channels: Int, frames: Int) throws(WaveformError) {
    precondition(frames > 0 && Int64(frames) % Self.alignment == 0, "a segment consists of whole blocks")
    layout = try PyramidLayout(sampleRate: sampleRate, channels: channels)
    builder = PyramidBuilder(layout: layout)
    blocks = PartBlocks(layout, capacity: frames / Int(Self.alignment))
  }

  /// Begins a segment at `frame`, a multiple of `alignment`.
  package mutating func begin(at frame: Int64) {
    precondition(frame % Self.alignment == 0, "a segment begins at a block's boundary")
    firstBlock = frame / Self.alignment
    builder = PyramidBuilder(layout: layout)
    blocks.begin()
  }

  /// Appends whole interleaved frames.
  package mutating func append(_ samples: Span<Int16>) {
    do { try builder.append(samples, to: &blocks) } catch { preconditionFailure("whole frames: \(error)") }
  }

  /// Returns the points of the segment.
  package mutating func finish() -> PyramidPart {
    blocks.run.seal(layout, offset: firstBlock)
    let words = blocks.run.finalCount * blocks.run.blockWords
    let rest = blocks.run.count > blocks.run.finalCount ? words..<words + blocks.run.blockWords : 0..<0
    return PyramidPart(
      frames: builder.framesAppended, firstBlock: firstBlock, pages: Array(blocks.run.words[..<words]),
      sums: blocks.sums, builder: builder, restPages: Array(blocks.run.words[rest]))
  }
}

/// The lower blocks of a segment, counted from its beginning.
private struct PartBlocks: PointSink {
  var run: BlockRun
  /// The sums of whole blocks, which are the points of level 8.
  private(set) var sums: [PointSums] = []

  init(_ layout: PyramidLayout, capacity: Int) {
    run = BlockRun(isUpper: false, lanes: layout.lanes, capacity: capacity)
  }

  mutating func begin() {
    run.begin(0)
    sums.removeAll(keepingCapacity: true)
  }

  @inline(__always)
  mutating func put(_ sums: Span<PointSums>, frames: Int64, level: Int, index: Int64) throws(WaveformError) {
    if level < PyramidLayout.levelsPerBlock {
      run.put(sums, frames: frames, level: level, index: index)
    } else if level == PyramidLayout.levelsPerBlock {
      for lane in 0..<sums.count { self.sums.append(sums[lane]) }
    }
  }
}
