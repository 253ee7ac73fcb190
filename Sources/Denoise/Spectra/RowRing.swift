import Glibc

/// The address of a row of numbers.
typealias Row = UnsafeMutablePointer<Float>

/// Rows of numbers, one per frame, in a ring: frame f has row f modulo their number.
///
/// Tasks on several threads use different rows at the same time; SegmentSchedule sees to it that no row is written
/// while another task uses it. The values are undefined at first. The system provides memory as rows are first used: in
/// pieces of 2 MB ("huge pages") if it can, because 16 MB in pages of 4 KB take 7 ms instead of 0.6.
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
    let size = count * distance * MemoryLayout<Float>.stride
    let isLarge = size >= Self.pieceBytes
    let bytes = unsafe aligned_alloc(isLarge ? Self.pieceBytes : 64, size)
    guard let bytes = unsafe bytes else { fatalError("no memory for \(count) rows of \(width)") }
    // The last piece isn't whole, and keeps ordinary pages.
    if isLarge { unsafe madvise(bytes, size / Self.pieceBytes * Self.pieceBytes, MADV_HUGEPAGE) }
    unsafe memory = bytes.bindMemory(to: Float.self, capacity: count * distance)
  }

  private static let pieceBytes = 2 << 20

  deinit { unsafe free(memory) }

  /// Returns the address of a frame's `width` numbers, aligned to 64 bytes.
  @unsafe
  subscript(frame: Int64) -> Row { unsafe memory + Int(frame % Int64(count)) * distance }
}
