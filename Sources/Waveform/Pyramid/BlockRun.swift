/// Consecutive blocks of one group being filled: one page per lane of each block, in a row as in the file.
struct BlockRun: Sendable {
  let isUpper: Bool
  let lanes: Int
  /// The pages of all blocks, zero where there are no points yet.
  private(set) var words: [UInt64]
  /// Maximum number of blocks.
  let capacity: Int
  /// The first block's index in its group.
  private(set) var first: Int64 = 0
  /// Number of blocks with points.
  private(set) var count = 0
  /// Number of blocks, from the first on, whose last point was made.
  private(set) var finalCount = 0
  /// Number of final blocks that have numbers and checksums.
  private var sealedCount = 0

  init(isUpper: Bool, lanes: Int, capacity: Int) {
    self.isUpper = isUpper
    self.lanes = lanes
    self.capacity = capacity
    words = [UInt64](repeating: 0, count: capacity * lanes * PyramidLayout.pageWords)
  }

  /// Number of words per block.
  var blockWords: Int { lanes * PyramidLayout.pageWords }

  /// Whether a block is one of the run's, or can become its next one.
  @inline(__always)
  func accepts(_ block: Int64) -> Bool { count > 0 && block >= first && block < first + Int64(capacity) }

  /// Empties the run. Block `first` comes next.
  mutating func begin(_ first: Int64) {
    for word in 0..<count * blockWords { words[word] = 0 }
    (self.first, count, finalCount, sealedCount) = (first, 0, 0, 0)
  }

  /// Stores a point of a block from `first` to `first + count`. Points come in the order in which a builder makes them.
  @inline(__always)
  mutating func put(_ sums: Span<PointSums>, frames: Int64, level: Int, index: Int64) {
    let slot = Int(PyramidLayout.block(level: level, point: index) - first)
    let word = PyramidLayout.word(level: level, point: index)
    count = max(count, slot + 1)
    // The last point of its coarsest level is the last of all.
    if word == PyramidLayout.blockPoints - 1 { finalCount = max(finalCount, slot + 1) }
    let start = slot * blockWords + word
    var words = self.words.mutableSpan
    guard frames.nonzeroBitCount == 1 else {
      for lane in 0..<sums.count {
        words[start + lane * PyramidLayout.pageWords] = sums[lane].point(frames: frames).word.littleEndian
      }
      return
    }
    let share = 1 / Double(frames)
    for lane in 0..<sums.count {
      words[start + lane * PyramidLayout.pageWords] = sums[lane].point(share: share).word.littleEndian
    }
  }

  /// Adds the numbers and checksums of final blocks, for the layout's file.
  ///
  /// `offset`: the index in the file's group of the block that counts as 0 here.
  mutating func seal(_ layout: PyramidLayout, offset: Int64 = 0) {
    while sealedCount < finalCount {
      let start = sealedCount * blockWords
      PyramidLayout.seal(
        &words, in: start..<start + blockWords,
        from: layout.page(upper: isUpper, block: first + Int64(sealedCount) + offset))
      sealedCount += 1
    }
  }

  /// Makes all blocks final, although points are missing.
  mutating func finish() { finalCount = count }

  /// Takes over the beginning of a block, after `begin`.
  mutating func put(_ block: Int64, pages: [UInt64]) {
    let slot = Int(block - first)
    for word in pages.indices { words[slot * blockWords + word] = pages[word] }
    count = slot + 1
  }
}
