/// How quiet the quietest moment of each quarter of a second is, for the time from which on a recording stays loud.
///
/// A moment is three frames, and its level the sum of their bands' levels. Up to 2.8 hours, 160 KB; beyond that, the
/// blocks are twice as long.
struct QuietMoments {
  private static let limit = 40_000
  private static let none = Int32.max

  /// Frames per block.
  private var length = 8
  private var blocks: [Int32] = []
  private var sums = (none, none)
  private var frameCount = 0

  /// Adds a frame.
  /// - Parameter level: the sum of its bands' levels; nil if it is silent, which counts as no moment.
  mutating func append(_ level: Int32?) {
    if frameCount % length == 0 {
      if blocks.count == Self.limit { merge() }
      if frameCount / length == blocks.count { blocks.append(Self.none) }
    }
    frameCount += 1
    let level = level ?? Self.none
    if level < Self.none, sums.0 < Self.none, sums.1 < Self.none {
      blocks[blocks.count - 1] = min(blocks[blocks.count - 1], sums.0 + sums.1 + level)
    }
    sums = (sums.1, level)
  }

  private mutating func merge() {
    blocks = stride(from: 0, to: blocks.count, by: 2).map { min(blocks[$0], blocks[$0 + 1]) }
    length *= 2
  }

  /// Returns the frames from the first to the last block with a moment that is at most this loud, per frame; nil if
  /// there is none.
  func range(notAbove level: Int32) -> Range<Int>? {
    func isQuiet(_ moment: Int32) -> Bool { moment < Self.none && moment <= 3 * level }
    guard let first = blocks.firstIndex(where: isQuiet), let last = blocks.lastIndex(where: isQuiet) else { return nil }
    return first * length..<min((last + 1) * length, frameCount)
  }
}
