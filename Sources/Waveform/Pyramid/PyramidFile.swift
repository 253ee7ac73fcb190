import Glibc
import Synchronization

/// An open pyramid file, which may still be growing.
///
/// Safe to share between threads. Pages are read into memory, verified (PyramidLayout.swift says when), and cached
/// within the process's limit. A slice of cached pages needs no system call. A slice of 2,000 pixels at the finest
/// level needs 8 pages of 4 KB per lane.
package final class PyramidFile: Sendable {
  /// The length of a page in bytes.
  package static let pageBytes = PyramidLayout.pageBytes

  /// Returns memory for pages that no open file uses to the system.
  package static func releaseMemory() { PageMemory.shared.unmapUnused() }

  /// Returns the length of the finished file of a sound in bytes; 0 if there can be none.
  package static func byteCount(sampleRate: Int, channels: Int, frames: Int64) -> Int64 {
    guard let layout = try? PyramidLayout(sampleRate: sampleRate, channels: channels) else { return 0 }
    return layout.pages(frames: min(max(frames, 0), PyramidLayout.frameLimit)) * pageBytes
  }

  private let layout: PyramidLayout
  private let source: any PyramidSource
  private let cache: PageCache
  private let table: PageTable
  private let finishedFrames: Mutex<Int64?>

  /// How many pages are collected before they are fetched. For each, the store may have to send a block of 64 KB.
  private static let pagesFetchedAtOnce = 4096

  /// Maximum number of pages per read.
  private static let longestRun = 64

  /// Opens a finished or growing pyramid.
  ///
  /// Throws `.io`, `.outdatedPyramid`, or, for a file that isn't a pyramid, `.malformedPyramid` or `.truncatedPyramid`.
  package convenience init(path: String) throws(WaveformError) { try self.init(path: path, cache: .shared) }

  /// Opens a pyramid to read it once, with at most `cacheBytes` of its pages in memory. Throws the same errors.
  package convenience init(path: String, cacheBytes: Int) throws(WaveformError) {
    try self.init(path: path, cache: PageCache(limit: cacheBytes))
  }

  convenience init(path: String, cache: PageCache) throws(WaveformError) {
    try self.init(try PageFile(path: path), cache: cache)
  }

  /// Reads a pyramid from `source`. Throws `.unavailable` and, except for `.io`, the errors of `init(path:)`.
  package convenience init(_ source: any PyramidSource) throws(WaveformError) { try self.init(source, cache: .shared) }

  convenience init(_ source: any PyramidSource, cache: PageCache) throws(WaveformError) {
    let header = try source.header()
    let layout = try PyramidLayout(header: header.span)
    let frames = PyramidLayout.totalFrames(header: header.span)
    if let frames { try source.check(pages: layout.pages(frames: frames)) }
    self.init(source, layout, frames, cache)
  }

  private init(_ source: any PyramidSource, _ layout: PyramidLayout, _ frames: Int64?, _ cache: PageCache) {
    (self.source, self.layout, self.cache) = (source, layout, cache)
    table = PageTable(layout)
    finishedFrames = Mutex(frames)
  }

  /// No other file can use the pages, even one of the same path: it has its own table.
  deinit { cache.removeAll(of: table) }

  /// Whether pages may have to be fetched before they can be read as fast as from a file.
  package var isApart: Bool { source.isApart }

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
    let header = try source.header()
    return PyramidLayout.totalFrames(header: header.span)
  }

  /// Returns the pixels of a window, computed from the pyramid's points.
  ///
  /// Throws `.needsSamples` below 256 frames per pixel; `.extentMismatch` if the window's extent isn't this
  /// recording's, or is complete although the file isn't finished; and an error with `isDamage` if the file isn't what
  /// was written. O(pixels · log scale). Blocks; without `waiting`, throws `.io` instead if pages have to be read from
  /// the disk.
  package func slice(_ window: WaveformWindow, waiting: Bool = true) throws(WaveformError) -> WaveformSlice {
    try slice(window, waiting: waiting, by: .best)
  }

  func slice(_ window: WaveformWindow, waiting: Bool = true, by loops: PeakLoops) throws(WaveformError) -> WaveformSlice
  {
    try check(window)
    var slice = WaveformSlice(empty: window)
    var rest = window
    var directory = table.current
    if let reader = PeakReader(layout: layout, window: window, loops: loops) {
      try reader.forEachBatch { (batch) throws(WaveformError) in
        try pages(batch.pages, in: &directory, of: window, waiting: waiting).read { pages in
          slice.appendPeaks(ofPixels: batch.pixels.count) { reader.read(batch, pages, into: &$0, at: $1) }
          reader.readLoudness(batch, pages, into: &slice)
        }
      }
      rest = window.part(reader.pixelCount..<window.pixelCount)
    }
    try read(rest, into: &slice, waiting: waiting)
    return slice
  }

  /// Appends the pixels of a window, without the faster way for peaks.
  func read(
    _ window: WaveformWindow, into slice: inout WaveformSlice, waiting: Bool = true
  ) throws(WaveformError) {
    let reader = PointReader(layout: layout, window: window)
    try reader.forEachBatch { (batch) throws(WaveformError) in
      try pages(batch.pages, of: window, waiting: waiting).read { reader.read(batch, $0, into: &slice) }
    }
  }

  /// Reads and verifies the pages of a window without computing anything. Throws the same errors as `slice`.
  package func verify(_ window: WaveformWindow) throws(WaveformError) {
    try check(window)
    try forEachBatch(of: window) { (numbers) throws(WaveformError) in
      var set = table.current.pages(numbers)
      if set.missingCount > 0 { try fill(&set, numbers, of: window, waiting: true) }
    }
  }

  /// Brings the pages of a window, as far as they aren't in memory, to where reading them takes no longer than from a
  /// file. Many are fetched at once: the pixels of a long window are spread over the whole pyramid. Blocks. Throws the
  /// same errors as `slice`.
  package func fetch(_ window: WaveformWindow) throws(WaveformError) {
    try forEachMissing(of: window) { (runs) throws(WaveformError) in try source.fetch(runs) }
  }

  /// Whether the pages of a window are in memory, or can be read without waiting for another machine. May read them
  /// from the disk. Blocks. Throws the same errors as `slice`.
  package func isAtHand(_ window: WaveformWindow) throws(WaveformError) -> Bool {
    var isAtHand = true
    try forEachMissing(of: window) { (runs) throws(WaveformError) in
      if isAtHand { isAtHand = source.isAtHand(runs) }
    }
    return isAtHand
  }

  /// Calls `body` with runs of the pages that a window needs and that aren't in memory, many at a time.
  private func forEachMissing(
    of window: WaveformWindow, _ body: ([Range<Int64>]) throws(WaveformError) -> Void
  ) throws(WaveformError) {
    try check(window)
    var wanted: [Int64] = []
    func passOn() throws(WaveformError) {
      wanted.sort()
      let runs = Self.runs(of: wanted) { _ in true }
      if !runs.isEmpty { try body(runs.map { wanted[$0.lowerBound]..<wanted[$0.lowerBound] + Int64($0.count) }) }
      wanted = []
    }
    try forEachBatch(of: window) { (numbers) throws(WaveformError) in
      let set = table.current.pages(numbers)
      if set.missingCount > 0 {
        for (index, number) in numbers.enumerated() where set.isMissing(index) { wanted.append(number) }
      }
      if wanted.count >= Self.pagesFetchedAtOnce { try passOn() }
    }
    try passOn()
  }

  /// Calls `body` with the numbers of the pages that some of a window's pixels need, until all pixels had their turn.
  private func forEachBatch(
    of window: WaveformWindow, _ body: ([Int64]) throws(WaveformError) -> Void
  ) throws(WaveformError) {
    var rest = window
    if let reader = PeakReader(layout: layout, window: window) {
      try reader.forEachBatch { (batch) throws(WaveformError) in try body(Array(batch.pages)) }
      rest = window.part(reader.pixelCount..<window.pixelCount)
    }
    try PointReader(layout: layout, window: rest).forEachBatch { (batch) throws(WaveformError) in try body(batch.pages)
    }
  }

  /// Reads and verifies every page of a finished file from disk. Throws `.malformedPyramid` if it isn't finished, and
  /// otherwise the same errors as `slice`.
  package func verify() throws(WaveformError) {
    guard let frames = try countedFrames() else { throw .malformedPyramid(field: "total frames") }
    let count = layout.pages(frames: frames)
    var first: Int64 = 1
    while first < count {
      let run = first..<min(first + Int64(Self.longestRun), count)
      let words = try source.read([run], waiting: true)[0]
      for number in run { try Self.check(words, from: first, number) }
      first = run.upperBound
    }
  }

  /// Throws if a window isn't one of this file's.
  private func check(_ window: WaveformWindow) throws(WaveformError) {
    if window.needsSamples { throw .needsSamples(scale: window.scale) }
    let extent = window.extent
    guard extent.sampleRate == sampleRate, extent.channels == channels,
      (0...PyramidLayout.frameLimit).contains(extent.availableFrames)
    else { throw .extentMismatch }
    if extent.isComplete, totalFrames != extent.availableFrames { throw .extentMismatch }
  }

  // MARK: Pages

  /// Returns the pages with these numbers, in order: from `directory`, or read and verified. If pages are read,
  /// `directory` has them afterward.
  private func pages(
    _ numbers: PageNumbers, in directory: inout PageDirectory, of window: WaveformWindow, waiting: Bool
  ) throws(WaveformError) -> PageSet {
    var set = directory.pages(numbers)
    if set.missingCount > 0 {
      try fill(&set, Array(numbers), of: window, waiting: waiting)
      directory = table.current
    }
    return set
  }

  /// Returns the pages with these numbers, in order: from memory, or read and verified.
  private func pages(_ numbers: [Int64], of window: WaveformWindow, waiting: Bool) throws(WaveformError) -> PageSet {
    var set = table.current.pages(numbers)
    if set.missingCount > 0 { try fill(&set, numbers, of: window, waiting: waiting) }
    return set
  }

  /// Reads and verifies the pages that are missing in a set.
  private func fill(
    _ set: inout PageSet, _ numbers: [Int64], of window: WaveformWindow, waiting: Bool
  ) throws(WaveformError) {
    var made: [(number: Int64, page: PyramidPage)] = []
    let points = window.extent.isComplete ? Int64.max : window.extent.availableFrames / 256
    let runs = Self.runs(of: numbers) { set.isMissing($0) }
    let read = try source.read(
      runs.map { numbers[$0.lowerBound]..<numbers[$0.lowerBound] + Int64($0.count) }, waiting: waiting)
    for (run, words) in zip(runs, read) {
      let first = numbers[run.lowerBound]
      for index in run {
        let number = numbers[index]
        let isFinal = layout.isFinal(page: number, points: points)
        if isFinal { try Self.check(words, from: first, number) }
        let page = PyramidPage(words, at: Int(number - first) * PyramidLayout.pageWords)
        set.fill(index, with: page)
        if isFinal { made.append((number, page)) }
      }
    }
    if !made.isEmpty { cache.keep(table.insert(made), of: table) }
  }

  /// Returns the runs of consecutive numbers, by their places, among those that are wanted.
  private static func runs(of numbers: [Int64], where isWanted: (Int) -> Bool) -> [Range<Int>] {
    var runs: [Range<Int>] = []
    var next = 0
    while next < numbers.count {
      guard isWanted(next) else {
        next += 1
        continue
      }
      var end = next + 1
      while end < numbers.count, end - next < longestRun, isWanted(end), numbers[end] == numbers[end - 1] + 1 {
        end += 1
      }
      runs.append(next..<end)
      next = end
    }
    return runs
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
