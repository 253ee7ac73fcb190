import CLinux
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

  /// Reads consecutive pages. Throws `.truncatedPyramid` if the file is too short. Blocks; without `waiting`, throws
  /// `.io` instead if the system would have to read from the disk.
  func read(_ pages: Range<Int64>, waiting: Bool = true) throws(WaveformError) -> [UInt64] {
    var words = [UInt64](repeating: 0, count: pages.count * PyramidLayout.pageWords)
    let start = pages.lowerBound * PyramidLayout.pageBytes
    var filled = 0
    while filled < words.count * 8 {
      let count = unsafe words.withUnsafeMutableBytes { buffer in
        let place = unsafe buffer.baseAddress.map { unsafe $0 + filled }
        return waiting
          ? unsafe pread(descriptor, place, buffer.count - filled, Int(start) + filled)
          : unsafe stillwave_read_cached(descriptor, place, buffer.count - filled, Int(start) + filled)
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
///
/// Peaks and loudness are apart, because most slices show only peaks. Both are in the order of the file
/// (`PyramidLayout.word`).
@safe
final class PyramidPage: Sendable {
  /// The memory of a page: its points, and the overhead of `malloc` and the tables.
  static let cost = Int(PyramidLayout.pageBytes) + 128

  fileprivate nonisolated(unsafe) let peaks: UnsafeMutablePointer<PointPeaks>
  private nonisolated(unsafe) let loudness: UnsafeMutablePointer<PointLoudness>

  /// Copies the page at `start` from the words of several pages.
  init(_ pages: [UInt64], at start: Int) {
    let count = PyramidLayout.pageWords
    // Aligned so that neighboring points of a level lie in one cache line.
    let memory = UnsafeMutableRawPointer.allocate(byteCount: Int(PyramidLayout.pageBytes), alignment: 64)
    unsafe peaks = memory.bindMemory(to: PointPeaks.self, capacity: count)
    unsafe loudness = (memory + Int(PyramidLayout.pageBytes) / 2).bindMemory(to: PointLoudness.self, capacity: count)
    for index in 0..<count {
      let word = UInt64(littleEndian: pages[start + index])
      unsafe (peaks + index).initialize(to: PointPeaks(word: word))
      unsafe (loudness + index).initialize(to: PointLoudness(word: word))
    }
  }

  deinit { unsafe UnsafeMutableRawPointer(peaks).deallocate() }

  /// The points, readable as long as the page exists.
  var points: PagePoints { unsafe PagePoints(peaks: peaks, loudness: loudness) }
}

/// The points of a page that is kept in memory by its owner. Reading them needs no reference counting.
///
/// Sendable because nothing writes to the memory after `init`.
@safe
struct PagePoints: @unchecked Sendable {
  private let peaks: UnsafePointer<PointPeaks>
  private let loudness: UnsafePointer<PointLoudness>

  fileprivate init(peaks: UnsafePointer<PointPeaks>, loudness: UnsafePointer<PointLoudness>) {
    unsafe (self.peaks, self.loudness) = (peaks, loudness)
  }

  /// A point by its index.
  @inline(__always)
  subscript(index: Int) -> WaveformPoint {
    precondition(index >= 0 && index < PyramidLayout.pageWords, "a point lies in its page")
    return unsafe WaveformPoint(peaks[index], loudness[index])
  }

  /// Calls `body` with the peaks of some points.
  @inline(__always)
  func withPeaks(_ range: Range<Int>, _ body: (UnsafeBufferPointer<PointPeaks>) -> Void) {
    precondition(range.lowerBound >= 0 && range.upperBound <= PyramidLayout.pageWords, "points lie in their page")
    unsafe body(UnsafeBufferPointer(start: peaks + range.lowerBound, count: range.count))
  }

  /// Appends the peaks of some points.
  func append(_ range: Range<Int>, to row: inout [PointPeaks]) {
    unsafe withPeaks(range) { unsafe row.append(contentsOf: $0) }
  }

  /// The address of the first of the page's points, for loops in C.
  @unsafe
  var first: UnsafePointer<UInt32> { unsafe UnsafeRawPointer(peaks).assumingMemoryBound(to: UInt32.self) }
}

/// The pages needed for a slice, in memory as long as the set exists.
struct PageSet {
  /// What owns the pages: parts of a table, and pages that were read just now.
  fileprivate(set) var chunks: [PageChunk] = []
  private var pages: [PyramidPage] = []
  private var points: [PagePoints?] = []

  init(reserving count: Int) { points.reserveCapacity(count) }

  /// Appends a page of a chunk that the set already owns, or a missing page.
  mutating func append(_ found: PagePoints?) { points.append(found) }

  /// Makes the set an owner of a chunk's pages.
  mutating func own(_ chunk: PageChunk) { chunks.append(chunk) }

  /// Whether a page is missing.
  func isMissing(_ index: Int) -> Bool { points[index] == nil }

  /// Fills a gap.
  mutating func fill(_ index: Int, with page: PyramidPage) {
    pages.append(page)
    points[index] = page.points
  }

  /// Calls `body` with the points of all pages. None may be missing.
  func read<Result>(_ body: (Span<PagePoints?>) -> Result) -> Result {
    withExtendedLifetime((chunks, pages)) { body(points.span) }
  }
}
