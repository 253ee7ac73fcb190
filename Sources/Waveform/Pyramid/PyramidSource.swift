/// Where a pyramid's pages are read from: a file, or a store on another machine. Thread-safe.
package protocol PyramidSource: Sendable {
  /// Whether `fetch` does anything.
  var isApart: Bool { get }

  /// Throws `.truncatedPyramid` if there are fewer than `count` pages, as far as that is known without reading them.
  func check(pages count: Int64) throws(WaveformError)

  /// Returns the words of each run of consecutive pages. Blocks; without `waiting`, throws `.io` instead if they aren't
  /// in memory.
  ///
  /// Throws `.truncatedPyramid` if there are fewer pages, and `.unavailable` if they can't be had now.
  func read(_ runs: [Range<Int64>], waiting: Bool) throws(WaveformError) -> [[UInt64]]

  /// Whether runs of pages can be read without waiting for another machine. May read them. Blocks.
  func isAtHand(_ runs: [Range<Int64>]) -> Bool

  /// Brings runs of pages, in ascending order, to where reading them takes no longer than from a file. Blocks. Throws
  /// the same errors as `read`.
  func fetch(_ runs: [Range<Int64>]) throws(WaveformError)
}

extension PyramidSource {
  /// Returns the words of a page. Blocks.
  func header() throws(WaveformError) -> [UInt64] { try read([0..<1], waiting: true)[0] }
}

/// Why pages that may be intact can't be had now.
package struct PagesUnavailable: Error, Equatable, Sendable {
  /// The source's own error.
  package let reason: any Error

  /// Wraps the source's error.
  package init(_ reason: any Error) { self.reason = reason }

  /// Whether both say the same.
  package static func == (left: Self, right: Self) -> Bool { "\(left.reason)" == "\(right.reason)" }
}
