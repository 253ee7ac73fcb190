import Glibc
import Synchronization

/// An open pyramid file, which may still be growing.
///
/// Safe to share between threads. Pages are read into memory, verified (PyramidLayout.swift says when), and cached
/// within the process's limit. A slice of cached pages needs no system call. A slice of 2,000 pixels at the finest
/// level needs 8 pages of 4 KB per lane.
package final class PyramidFile: Sendable {
  private let layout: PyramidLayout
  private let file: PageFile
  private let cache: PageCache
  private let table = PageTable()
  private let finishedFrames: Mutex<Int64?>

  /// Maximum number of pages per read.
  private static let longestRun: Int64 = 64

  /// Opens a finished or growing pyramid.
  ///
  /// Throws `.io`, `.outdatedPyramid`, or, for a file that isn't a pyramid, `.malformedPyramid` or `.truncatedPyramid`.
  package convenience init(path: String) throws(WaveformError) { try self.init(path: path, cache: .shared) }

  convenience init(path: String, cache: PageCache) throws(WaveformError) {
    let file = try PageFile(path: path)
    let header = try file.read(0..<1)
    let layout = try PyramidLayout(header: header.span)
    let frames = PyramidLayout.totalFrames(header: header.span)
    if let frames { try Self.check(file, layout, frames: frames) }
    self.init(file, layout, frames, cache)
  }

  private init(_ file: PageFile, _ layout: PyramidLayout, _ frames: Int64?, _ cache: PageCache) {
    (self.file, self.layout, self.cache) = (file, layout, cache)
    finishedFrames = Mutex(frames)
  }

  private static func check(_ file: PageFile, _ layout: PyramidLayout, frames: Int64) throws(WaveformError) {
    let (size, needed) = (try file.size(), layout.pages(frames: frames) * PyramidLayout.pageBytes)
    guard size >= needed else { throw .truncatedPyramid(size: size, needed: needed) }
  }

  /// The recording's sample rate in hertz.
  package var sampleRate: Int { layout.sampleRate }

  /// The recording's number of channels.
  package var channels: Int { layout.channels }

  /// The recording's length in frames; nil until the file is finished. Until then, each access reads the header.
  package var totalFrames: Int64? {
    if let known = finishedFrames.withLock({ $0 }) { return known }
    do throws(WaveformError) {
      let frames = try countedFrames()
      finishedFrames.withLock { $0 = frames }
      return frames
    } catch {
      return nil
    }
  }

  /// Reads the frame count from the header.
  private func countedFrames() throws(WaveformError) -> Int64? {
    let header = try file.read(0..<1)
    return PyramidLayout.totalFrames(header: header.span)
  }

  /// Returns the pixels of a window, computed from the pyramid's points.
  ///
  /// Throws `.needsSamples` below 256 frames per pixel; `.extentMismatch` if the window's extent isn't this
  /// recording's, or is complete although the file isn't finished; and an error with `isDamage` if the file isn't what
  /// was written. O(pixels · log scale).
  package func slice(_ window: WaveformWindow) throws(WaveformError) -> WaveformSlice {
    var slice = WaveformSlice(empty: window)
    let reader = try reader(of: window)
    try reader.forEachBatch { (batch) throws(WaveformError) in
      let pages = try pages(batch.requests)
      pages.hold { reader.read(batch, pages, into: &slice) }
    }
    return slice
  }

  /// Reads and verifies the pages of a window without computing anything. Throws the same errors as `slice`.
  package func verify(_ window: WaveformWindow) throws(WaveformError) {
    try reader(of: window).forEachBatch { (batch) throws(WaveformError) in _ = try pages(batch.requests) }
  }

  /// Reads and verifies every page of a finished file from disk. Throws `.malformedPyramid` if it isn't finished, and
  /// otherwise the same errors as `slice`.
  package func verify() throws(WaveformError) {
    guard let frames = try countedFrames() else { throw .malformedPyramid(field: "total frames") }
    let count = layout.pages(frames: frames)
    var first: Int64 = 1
    while first < count {
      let run = first..<min(first + Self.longestRun, count)
      let words = try file.read(run)
      for number in run { try Self.check(words, from: first, number) }
      first = run.upperBound
    }
  }

  private func reader(of window: WaveformWindow) throws(WaveformError) -> PointReader {
    if window.needsSamples { throw .needsSamples(scale: window.scale) }
    let extent = window.extent
    guard extent.sampleRate == sampleRate, extent.channels == channels,
      (0...PyramidLayout.frameLimit).contains(extent.availableFrames)
    else { throw .extentMismatch }
    if extent.isComplete, totalFrames != extent.availableFrames { throw .extentMismatch }
    return PointReader(layout: layout, window: window)
  }

  // MARK: Pages

  private func pages(_ requests: [PageRequest]) throws(WaveformError) -> PageSet {
    var found = table.pages(requests.map(\.number))
    var made: [(number: Int64, page: PyramidPage)] = []
    var next = 0
    while next < requests.count {
      guard found[next] == nil else {
        next += 1
        continue
      }
      var end = next + 1
      while end < requests.count, end - next < Self.longestRun, found[end] == nil,
        requests[end].number == requests[end - 1].number + 1
      { end += 1 }
      let first = requests[next].number
      let words = try file.read(first..<first + Int64(end - next))
      for index in next..<end {
        let number = requests[index].number
        if requests[index].isFinal { try Self.check(words, from: first, number) }
        let page = PyramidPage(words, at: Int(number - first) * PyramidLayout.pageWords)
        found[index] = page
        if requests[index].isFinal { made.append((number, page)) }
      }
      next = end
    }
    if !made.isEmpty { cache.keep(table.insert(made), of: table) }
    return PageSet(found.compactMap { $0 })
  }

  /// Throws if page `number` isn't what was written. `words` are consecutive pages, beginning with `first`.
  private static func check(_ words: [UInt64], from first: Int64, _ number: Int64) throws(WaveformError) {
    let start = Int(number - first) * PyramidLayout.pageWords
    let page = words.span.extracting(start..<start + PyramidLayout.pageWords)
    guard PyramidLayout.isSound(page, number: number) else { throw .damagedPyramid(page: number) }
  }
}

extension WaveformError {
  /// Whether a pyramid's file isn't what was written, so that only rebuilding helps: it is missing, truncated, corrupt,
  /// unreadable, or of another version.
  package var isDamage: Bool {
    switch self {
    case .malformedPyramid, .truncatedPyramid, .damagedPyramid, .outdatedPyramid, .extentMismatch: true
    case .io(_, _, let number): [ENOENT, ENOTDIR, EISDIR, ELOOP, EIO, ENXIO, EUCLEAN].contains(number)
    default: false
    }
  }
}
