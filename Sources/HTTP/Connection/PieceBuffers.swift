/// The buffers in which one loop receives the content of fast clients: large, few, and used again.
///
/// A buffer is lent from the read that fills it until the handler asks for the next piece or the exchange ends. It's an
/// array, so a handler that keeps a piece for longer keeps its content; the buffer is then allocated again.
struct PieceBuffers {
  /// Size of a buffer, as a multiple of the size of an ordinary read.
  static let readsPerPiece = 16
  /// Number of buffers that may be lent at once, so that many fast clients of a slow disk don't fill the memory. Other
  /// connections use ordinary reads.
  static let lentLimit = 2

  /// Size of a buffer in bytes.
  let byteCount: Int
  private(set) var lentCount = 0
  private var unused: [[UInt8]] = []

  init(byteCount: Int) {
    self.byteCount = byteCount
  }

  /// Number of buffers kept.
  var unusedCount: Int { unused.count }

  /// Returns an empty buffer with room for `byteCount` bytes, or nil if too many are lent.
  mutating func take() -> [UInt8]? {
    guard lentCount < Self.lentLimit else { return nil }
    lentCount += 1
    // The one returned last isn't used yet: the thread that worked on it may hold its reference for another moment, and
    // then it would have to be allocated again.
    var buffer = unused.count > 1 ? unused.removeFirst() : []
    buffer.removeAll(keepingCapacity: true)
    buffer.reserveCapacity(byteCount)
    return buffer
  }

  /// Ends the lending of a buffer.
  mutating func giveBack(_ buffer: [UInt8]) {
    precondition(lentCount > 0, "a buffer that is given back was lent")
    lentCount -= 1
    unused.append(buffer)
  }

  /// Frees the buffers that are kept if none is lent.
  mutating func freeUnused() {
    if lentCount == 0, !unused.isEmpty { unused = [] }
  }
}
