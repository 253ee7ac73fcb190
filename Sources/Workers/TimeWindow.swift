import Terms

/// A time range of a recording in seconds, 0 ≤ start < end.
package struct TimeWindow: Codable, Sendable, Equatable {
  /// In seconds.
  package let start: Double
  /// In seconds; a part beyond the recording's end is ignored.
  package let end: Double

  /// - Parameters:
  ///   - start: in seconds, 0 or more.
  ///   - end: in seconds, over `start`.
  package init(start: Double, end: Double) {
    precondition(start >= 0 && start < end, "a window has a length")
    self.start = start
    self.end = end
  }

  /// Returns the frames, each time rounded to the nearest one, at least one frame.
  package func frames(sampleRate: Int) -> Range<Int64> { Range(start: start, end: end, sampleRate: sampleRate) }
}
