import Glibc

/// The address of a row of numbers.
typealias Row = UnsafeMutablePointer<Float>

/// Rows of numbers, one per frame, in a ring: frame f has row f modulo their number.
///
/// Tasks on several threads use different rows at the same time; SegmentSchedule sees to it that no row is written
/// while another task uses it. The values are undefined at first. The system provides memory as rows are first used.
@safe final class RowRing: @unchecked Sendable {  // see above
  /// Numbers per row.
  let width: Int
  /// Number of rows.
  let count: Int
  /// Numbers from one row to the next.
  let distance: Int
  private let memory: Row

  init(width: Int, count: Int) {
    precondition(width > 0 && count > 0, "a ring has rows")
    self.width = width
    self.count = count
    distance = (width + 15) / 16 * 16
    let bytes = unsafe aligned_alloc(64, count * distance * MemoryLayout<Float>.stride)
    guard let bytes = unsafe bytes else { fatalError("no memory for \(count) rows of \(width)") }
    unsafe memory = bytes.bindMemory(to: Float.self, capacity: count * distance)
  }

  deinit { unsafe free(memory) }

  /// Returns the address of a frame's `width` numbers, aligned to 64 bytes.
  @unsafe
  subscript(frame: Int64) -> Row { unsafe memory + Int(frame % Int64(count)) * distance }
}
