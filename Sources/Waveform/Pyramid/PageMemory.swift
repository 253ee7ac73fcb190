import CPeaks
import Glibc
import Synchronization

/// Memory for the pages of pyramids.
///
/// A slice of a long recording reads a few numbers of thousands of pages. If these are anywhere in the heap, the
/// processor has to look up the address of each: that took as long as all else. So pages share pieces of 2 MB, which
/// the system maps as a whole ("huge pages", Documentation/admin-guide/mm/transhuge.rst of Linux) if it can. A piece
/// begins with a line of 64 bytes for each of its pages (CPeaks.h).
@safe
final class PageMemory: Sendable {
  /// The memory of the process.
  static let shared = PageMemory()

  /// The bytes of a page, and the bytes that are mapped together. Both are powers of two.
  private static let pageBytes = peak_page_bytes
  private static let pieceBytes = peak_piece_bytes
  /// The bytes of a page's line.
  static let lineBytes = peak_line_bytes
  /// The place of the first page, after the lines.
  private static let firstPage = pieceBytes / pageBytes * lineBytes / pageBytes
  /// The number of pages of a piece.
  static let pagesPerPiece = pieceBytes / pageBytes - firstPage

  private struct State {
    /// The number of used pages of each piece, by its address.
    var used: [UInt: Int] = [:]
    /// The addresses of unused pages.
    var free: [UInt] = []
  }

  private let state = Mutex(State())

  init() {}

  /// Total size of the mapped memory, in bytes.
  var byteCount: Int { state.withLock { $0.used.count } * Self.pieceBytes }

  /// Returns uninitialized memory for a page, aligned to its size. Ends the process if the system has none, like
  /// `malloc` in Swift.
  func take() -> UnsafeMutableRawPointer {
    let address = state.withLock { state in
      if state.free.isEmpty { Self.map(into: &state) }
      let address = state.free.removeLast()
      state.used[Self.piece(of: address), default: 0] += 1
      return address
    }
    guard let page = unsafe UnsafeMutableRawPointer(bitPattern: address) else { preconditionFailure("a page is at 0") }
    return unsafe page
  }

  /// Takes a page back. A piece without used pages is unmapped if there is another one's worth of unused pages.
  func giveBack(_ page: UnsafeMutableRawPointer) {
    let address = UInt(bitPattern: page)
    let piece = Self.piece(of: address)
    let isUnused = state.withLock { state in
      state.free.append(address)
      let rest = (state.used[piece] ?? 1) - 1
      state.used[piece] = rest
      guard rest == 0, state.free.count >= 2 * Self.pagesPerPiece else { return false }
      state.free.removeAll { Self.piece(of: $0) == piece }
      state.used[piece] = nil
      return true
    }
    if isUnused { unsafe munmap(UnsafeMutableRawPointer(bitPattern: piece), Self.pieceBytes) }
  }

  /// Unmaps all pieces without used pages.
  func unmapUnused() {
    let pieces = state.withLock { state in
      let unused = state.used.filter { $0.value == 0 }.map(\.key)
      for piece in unused { state.used[piece] = nil }
      let used = state.used
      state.free.removeAll { used[Self.piece(of: $0)] == nil }
      return unused
    }
    for piece in pieces { unsafe munmap(UnsafeMutableRawPointer(bitPattern: piece), Self.pieceBytes) }
  }

  /// Returns the line of a page in use.
  static func line(of page: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
    let within = Int(UInt(bitPattern: page) & UInt(pieceBytes - 1))
    return unsafe page - within + within / (pageBytes / lineBytes)
  }

  private static func piece(of address: UInt) -> UInt { address & ~UInt(pieceBytes - 1) }

  /// Maps a piece. The first one consists of ordinary pages: a process that reads little needs little.
  private static func map(into state: inout State) {
    let size = 2 * pieceBytes
    let mapped = unsafe mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let mapped = unsafe mapped, unsafe mapped != MAP_FAILED else { preconditionFailure("no memory for a page") }
    let start = UInt(bitPattern: mapped)
    let piece = Self.piece(of: start + UInt(pieceBytes - 1))
    if piece > start { unsafe munmap(mapped, Int(piece - start)) }
    let end = piece + UInt(pieceBytes)
    if end < start + UInt(size) {
      unsafe munmap(UnsafeMutableRawPointer(bitPattern: end), Int(start + UInt(size) - end))
    }
    if !state.used.isEmpty {
      unsafe madvise(UnsafeMutableRawPointer(bitPattern: piece), pieceBytes, MADV_HUGEPAGE)
    }
    state.used[piece] = 0
    // In descending order, so that they're taken in ascending order.
    for page in (0..<pagesPerPiece).reversed() { state.free.append(piece + UInt((firstPage + page) * pageBytes)) }
  }
}
