import CPeaks

/// The pages of several lanes, as arguments of loops in C.
extension Span<PagePoints?> {
  /// Calls `body` with the addresses of one lane's pages, which are as many pointers apart as there are lanes.
  func withAddresses<R>(ofLane lane: Int, _ body: (UnsafePointer<UnsafePointer<UInt32>?>?) -> R) -> R {
    precondition(lane >= 0 && lane < max(count, 1), "each block has a page of each lane")
    return unsafe withUnsafeBufferPointer { pages in
      let first = unsafe pages.baseAddress.map { unsafe UnsafeRawPointer($0 + lane) }
      return unsafe body(first?.assumingMemoryBound(to: UnsafePointer<UInt32>?.self))
    }
  }
}

/// The peaks of consecutive points of one level and lane, copied from their pages.
struct PointRow {
  /// The level of the points.
  let level: Int
  /// The number of the first point.
  let first: Int64
  /// The points, and others that the loops may read but that don't count.
  let points: [UInt32]

  /// What the loops may read after the last point.
  private static let padding = 16

  /// Copies one lane's points of a level from the pages of consecutive blocks, which begin with block `firstBlock` of
  /// their group. `pages`: those of all lanes, none missing.
  init(of pages: Span<PagePoints?>, lane: Int, lanes: Int, level: Int, firstBlock: Int64) {
    let perBlock = 256 >> (level & 7)
    self.level = level
    first = firstBlock * Int64(perBlock)
    let blocks = pages.count / lanes
    let count = blocks * perBlock
    var points: [UInt32] = []
    points.append(addingCapacity: count + Self.padding) { output in
      unsafe output.withUnsafeMutableBufferPointer { row, initializedCount in
        unsafe pages.withAddresses(ofLane: lane) { addresses in
          if let row = row.baseAddress, let addresses = unsafe addresses {
            unsafe peak_gather(row, addresses, lanes, blocks, Int32(level))
          }
        }
        initializedCount = count
      }
      output.append(repeating: 0, count: Self.padding)
    }
    self.points = points
  }

  /// The number after the last point's.
  var end: Int64 { first + Int64(points.count - Self.padding) }
}
