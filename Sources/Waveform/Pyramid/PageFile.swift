import CLinux
import Glibc
import Synchronization
import Terms

/// An open pyramid file, read page by page into memory.
///
/// The file isn't mapped: if it is truncated by something else, touching a mapped page past its end kills the process
/// (SIGBUS). Here, a short read is just an error.
@safe
final class PageFile: PyramidSource {
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

  deinit { FileClosing.close(descriptor) }

  var isApart: Bool { false }

  func check(pages count: Int64) throws(WaveformError) {
    let (size, needed) = (Int64(try status().st_size), count * PyramidLayout.pageBytes)
    guard size >= needed else { throw .truncatedPyramid(size: size, needed: needed) }
  }

  private func status() throws(WaveformError) -> stat {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw .io(operation: "stat", path: path, errno: errno) }
    return status
  }

  /// Returns true: the pages are on this machine.
  func isAtHand(_ runs: [Range<Int64>]) -> Bool { true }

  /// Does nothing, for the same reason.
  func fetch(_ runs: [Range<Int64>]) {}

  func read(_ runs: [Range<Int64>], waiting: Bool) throws(WaveformError) -> [[UInt64]] {
    try runs.map { (run) throws(WaveformError) in try read(run, waiting: waiting) }
  }

  /// Returns the words of consecutive pages.
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
/// (`PyramidLayout.word`). The peaks of level 4 are also in the page's line.
@safe
final class PyramidPage: Sendable {
  /// The memory of a page: its points, and the overhead of `malloc` and the tables.
  static let cost = Int(PyramidLayout.pageBytes) + 192

  private nonisolated(unsafe) let memory: UnsafeMutableRawPointer

  /// Copies the page at `start` from the words of several pages.
  init(_ pages: [UInt64], at start: Int) {
    let count = PyramidLayout.pageWords
    unsafe memory = PageMemory.shared.take()
    let peaks = unsafe memory.bindMemory(to: PointPeaks.self, capacity: count)
    let loudness = unsafe (memory + PagePoints.loudnessStart).bindMemory(to: PointLoudness.self, capacity: count)
    for index in 0..<count {
      let word = UInt64(littleEndian: pages[start + index])
      unsafe (peaks + index).initialize(to: PointPeaks(word: word))
      unsafe (loudness + index).initialize(to: PointLoudness(word: word))
    }
    let levelFour = unsafe peaks + PyramidLayout.word(level: 4, point: 0)
    unsafe PageMemory.line(of: memory).copyMemory(from: levelFour, byteCount: PageMemory.lineBytes)
  }

  deinit { unsafe PageMemory.shared.giveBack(memory) }

  /// The points, readable as long as the page exists.
  var points: PagePoints { unsafe PagePoints(memory) }
}

/// The points of a page that is kept in memory by its owner. Reading them needs no reference counting.
///
/// Sendable because nothing writes to the memory after `init`. Nothing but a pointer, so that an array of these, some
/// nil, is an array of pointers for loops in C.
@safe
struct PagePoints: @unchecked Sendable {
  /// Where the loudness begins in a page, in bytes.
  fileprivate static let loudnessStart = Int(PyramidLayout.pageBytes) / 2

  private let memory: UnsafeRawPointer

  fileprivate init(_ memory: UnsafeRawPointer) { unsafe self.memory = memory }

  private var peaks: UnsafePointer<PointPeaks> { unsafe memory.assumingMemoryBound(to: PointPeaks.self) }
  private var loudness: UnsafePointer<PointLoudness> {
    unsafe (memory + Self.loudnessStart).assumingMemoryBound(to: PointLoudness.self)
  }

  /// A point by its index.
  @inline(__always)
  subscript(index: Int) -> WaveformPoint {
    precondition(index >= 0 && index < PyramidLayout.pageWords, "a point lies in its page")
    return unsafe WaveformPoint(peaks[index], loudness[index])
  }

  /// Returns the loudness of a point.
  @inline(__always)
  func loudness(_ index: Int) -> PointLoudness {
    precondition(index >= 0 && index < PyramidLayout.pageWords, "a point lies in its page")
    return unsafe loudness[index]
  }

  /// Calls `body` with the peaks of some points.
  @inline(__always)
  func withPeaks(_ range: Range<Int>, _ body: (UnsafeBufferPointer<PointPeaks>) -> Void) {
    precondition(range.lowerBound >= 0 && range.upperBound <= PyramidLayout.pageWords, "points lie in their page")
    unsafe body(UnsafeBufferPointer(start: peaks + range.lowerBound, count: range.count))
  }
}
