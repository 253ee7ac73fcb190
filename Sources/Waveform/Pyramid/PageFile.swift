import Glibc
import Synchronization

/// An open pyramid, read page by page into memory.
///
/// It is never mapped: the disk may change a file underneath a process, and touching a mapped page that a file no
/// longer has kills the process (SIGBUS). A read that comes up short is an error.
@safe
final class PageFile: Sendable {
  private let descriptor: Int32
  private let path: String

  /// Opens a file for reading. Throws `.io`, or `.malformedPyramid` where it is none, and never waits for a pipe's
  /// writer.
  init(path: String) throws(WaveformError) {
    descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw .io(operation: "open", path: path, errno: errno) }
    self.path = path
    guard try status().st_mode & S_IFMT == S_IFREG else { throw .malformedPyramid(field: "file") }
  }

  deinit { close(descriptor) }

  /// In bytes, now.
  func size() throws(WaveformError) -> Int64 { Int64(try status().st_size) }

  private func status() throws(WaveformError) -> stat {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw .io(operation: "stat", path: path, errno: errno) }
    return status
  }

  /// Reads consecutive pages. Throws `.truncatedPyramid` where the file is shorter. Blocks.
  func read(_ pages: Range<Int64>) throws(WaveformError) -> [UInt64] {
    var words = [UInt64](repeating: 0, count: pages.count * PyramidLayout.pageWords)
    let start = pages.lowerBound * PyramidLayout.pageBytes
    var filled = 0
    while filled < words.count * 8 {
      let count = unsafe words.withUnsafeMutableBytes { buffer in
        unsafe pread(
          descriptor, buffer.baseAddress.map { unsafe $0 + filled }, buffer.count - filled, Int(start) + filled)
      }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .io(operation: "read", path: path, errno: errno) }
      guard count > 0 else {
        throw .truncatedPyramid(size: start + Int64(filled), needed: pages.upperBound * PyramidLayout.pageBytes)
      }
      filled += count
    }
    return words
  }
}

/// A page's points in memory. Constant once made.
@safe
final class PyramidPage: Sendable {
  /// What a page takes: the points, and what `malloc` and the tables add.
  static let cost = Int(PyramidLayout.pageBytes) + 128

  fileprivate nonisolated(unsafe) let words: UnsafeMutablePointer<UInt64>
  /// Whether it was read from since the cache last looked.
  let isUsed = Atomic<Bool>(false)

  /// A copy of the page at `start` among the words of several.
  init(_ pages: [UInt64], at start: Int) {
    unsafe words = .allocate(capacity: PyramidLayout.pageWords)
    let page = pages[start..<start + PyramidLayout.pageWords]
    unsafe page.withUnsafeBufferPointer { source in
      guard let first = source.baseAddress else { return }
      unsafe words.initialize(from: first, count: source.count)
    }
  }

  deinit { unsafe words.deallocate() }
}

/// Pages that a slice is made of, kept in memory for as long as it lasts. Reading a point costs no count of references.
@safe
struct PageSet {
  private let pages: [PyramidPage]
  private let words: [UnsafeMutablePointer<UInt64>]

  init(_ pages: [PyramidPage]) {
    self.pages = pages
    unsafe words = pages.map { unsafe $0.words }
  }

  /// A word of a page, as it is in the file.
  @inline(__always)
  subscript(page: Int, word: Int) -> UInt64 {
    precondition(word >= 0 && word < PyramidLayout.pageWords, "a word lies in its page")
    return unsafe words[page][word]
  }

  /// Keeps the pages while `body` reads from them.
  func hold<Result>(_ body: () -> Result) -> Result { withExtendedLifetime(pages, body) }
}
