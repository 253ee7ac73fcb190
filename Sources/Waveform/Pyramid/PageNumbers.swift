import CPeaks

/// The numbers of the pages that a batch of pixels needs, in order: all lanes of each block, lower blocks first.
///
/// A table of pages finds their blocks without them; they are listed only if pages are missing.
struct PageNumbers: Sequence {
  private let layout: PyramidLayout
  /// The lanes.
  let lanes: Range<Int>
  private let firstFrame: Int64
  private let step: Int64
  /// Number of lower blocks.
  let lowerCount: Int
  /// The upper blocks.
  let upper: Range<Int64>

  /// `firstFrame`: a frame in the first of `lowerCount` lower blocks. `step`: the number of frames from there to one in
  /// the next.
  init(layout: PyramidLayout, lanes: Range<Int>, firstFrame: Int64, step: Int64, lowerCount: Int, upper: Range<Int64>) {
    (self.layout, self.lanes) = (layout, lanes)
    (self.firstFrame, self.step, self.lowerCount, self.upper) = (firstFrame, step, lowerCount, upper)
  }

  /// The first lower block.
  var firstLower: Int64 { firstFrame >> 16 }

  /// The groups of all blocks.
  var groups: Range<Int64> {
    guard lowerCount > 0 else { return upper }
    let lower = firstFrame >> 24..<(firstFrame + step * Int64(lowerCount - 1)) >> 24 + 1
    guard !upper.isEmpty else { return lower }
    return Swift.min(lower.lowerBound, upper.lowerBound)..<Swift.max(lower.upperBound, upper.upperBound)
  }

  /// The search for the lower blocks.
  var search: peak_search { peak_search(frame: firstFrame, step: step, count: lowerCount) }

  var underestimatedCount: Int { (lowerCount + upper.count) * lanes.count }

  func makeIterator() -> Iterator { Iterator(self) }

  struct Iterator: IteratorProtocol {
    private let numbers: PageNumbers
    private var frame: Int64
    private var lowerRest: Int
    private var block: Int64
    /// The page of the next lane, and of the one after the last lane.
    private var (page, end) = (Int64(0), Int64(0))

    fileprivate init(_ numbers: PageNumbers) {
      self.numbers = numbers
      (frame, lowerRest, block) = (numbers.firstFrame, numbers.lowerCount, numbers.upper.lowerBound)
    }

    @inline(__always)
    mutating func next() -> Int64? {
      if page == end {
        let first: Int64
        if lowerRest > 0 {
          first = numbers.layout.page(upper: false, block: frame >> 16)
          lowerRest &-= 1
          frame &+= numbers.step
        } else if block < numbers.upper.upperBound {
          first = numbers.layout.page(upper: true, block: block)
          block &+= 1
        } else {
          return nil
        }
        page = first &+ Int64(numbers.lanes.lowerBound)
        end = first &+ Int64(numbers.lanes.upperBound)
      }
      defer { page &+= 1 }
      return page
    }
  }
}
