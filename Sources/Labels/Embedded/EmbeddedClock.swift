/// What is known about a recording's time when its file is searched for labels.
package struct EmbeddedClock: Sendable {
  /// The length of the recording, if it is known: the end of labels whose file gives none.
  package var duration: MediaTime?
  /// Microseconds per MPEG frame of sound, in which some lyrics count; nil in other files.
  package var mpegFrameMicroseconds: Double?
  /// The time on the file's clock, in microseconds, that is the recording's 0.
  package var zero: Int64 = 0

  /// Creates a clock.
  package init(duration: MediaTime?, mpegFrameMicroseconds: Double? = nil, zero: Int64 = 0) {
    (self.duration, self.mpegFrameMicroseconds, self.zero) = (duration, mpegFrameMicroseconds, zero)
  }

  /// Returns the recording's time for a time on the file's clock, in microseconds; 0 for earlier ones. If that clock
  /// begins elsewhere, rounds to milliseconds, which is as precise as these files are.
  func time(_ microseconds: Int64) -> MediaTime {
    let (difference, overflow) = microseconds.subtractingReportingOverflow(zero)
    guard !overflow, zero != 0 else { return MediaTime(clamping: overflow ? 0 : difference) }
    return MediaTime(clamping: MediaTime(clamping: difference).milliseconds * 1000)
  }
}
