import Glibc
import Synchronization

/// An open pyramid file, read page by page into memory.
///
/// The file isn't mapped: if it is truncated by something else, touching a mapped page past its end kills the process
/// (SIGBUS). Here, a short read is just an error.
@safe
final class PageFile: Sendable {
  private let descriptor: Int32
  private let path: String

  /// Opens a file for reading. Throws `.io`, or `.malformedPyramid` if it isn't a regular file. Never waits for the
  /// writer of a pipe.
  init(path: String) throws(WaveformError) {
    descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw .io(operation: "open", path: path, errno: errno) }
    self.path = path
    guard try status().st_mode & S_IFMT == S_IFREG else { throw .malformedPyramid(field: "file") }
  }

  deinit { close(descriptor) }

  /// Returns the current size in bytes.
  func size() throws(WaveformError) -> Int64 { Int64(try status().st_size) }

  private func status() throws(WaveformError) -> stat {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw .io(operation: "stat", path: path, errno: errno) }
    return status
  }

  /// Reads consecutive pages. Throws `.truncatedPyramid` if the file is too short. Blocks.
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

/// A page's points in memory. Immutable.
@safe
final class PyramidPage: Sendable {
  /// The memory of a page: its points, and the overhead of `malloc` and the tables.
  static let cost = Int(PyramidLayout.pageBytes) + 128

  fileprivate nonisolated(unsafe) let words: UnsafeMutablePointer<UInt64>
  /// Whether it was read since the cache last checked.
  let isUsed = Atomic<Bool>(false)

  /// Copies the page at `start` from the words of several pages.
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

/// The pages needed for a slice, retained as long as the set exists. Reading a point needs no reference counting.
@safe
struct PageSet {
  private let pages: [PyramidPage]
  private let words: [UnsafeMutablePointer<UInt64>]

  init(_ pages: [PyramidPage]) {
    self.pages = pages
    unsafe words = pages.map { unsafe $0.words }
  }

  /// A word of a page, as stored in the file.
  @inline(__always)
  subscript(page: Int, word: Int) -> UInt64 {
    precondition(word >= 0 && word < PyramidLayout.pageWords, "a word lies in its page")
    return unsafe words[page][word]
  }

  /// Keeps the pages alive while `body` reads from them.
  func hold<Result>(_ body: () -> Result) -> Result { withExtendedLifetime(pages, body) }
}
