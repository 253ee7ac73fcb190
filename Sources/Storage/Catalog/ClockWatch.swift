// What has reached its age is deleted by the catalog's clock, and can't be had back. A standby that takes over with a
// clock that is a month ahead would have everything deleted at once. So a second opinion counts, too:
//
//   this machine's clock              the two may differ by `toleranceSeconds`
//   the time since the machine began  goes on by itself, whatever clock is set: if the catalog's time has gained more
//                                     than that since it was heard last, it counts as wrong for `doubtSeconds`, so that
//                                     somebody can look, or until it is set right again
//
// A clock that is behind deletes nothing early. If it is set right, it jumps as well, and deletions wait that long.

/// Why the catalog's time may be wrong.
package enum ClockDoubt: Sendable, Equatable {
  /// It is so many seconds ahead of this machine's clock; behind it, if negative.
  case differs(seconds: Double)
  /// It has jumped ahead by so many seconds within the last day.
  case jumped(seconds: Double)
}

/// Compares the catalog's clock with this machine's, and with what it said before. Times are in milliseconds; it has no
/// clock itself.
struct ClockWatch {
  static let toleranceSeconds = 300.0
  static let doubtSeconds = 86_400.0

  private static let tolerance = Int64(toleranceSeconds * 1000)
  private static let doubtTime = Int64(doubtSeconds * 1000)

  /// The catalog's time minus the time since this machine was started, as heard last.
  private var start: Int64?
  /// The same before it jumped, and when that was heard, since the machine was started.
  private var jump: (start: Int64, at: Int64)?
  /// How far the catalog's clock is ahead of this machine's.
  private(set) var difference: Int64 = 0

  /// Takes in what both clocks say, so long after this machine was started.
  mutating func hear(_ catalog: Int64, own: Int64, sinceBoot now: Int64) {
    let (last, start) = (self.start, catalog - now)
    (self.start, difference) = (start, catalog - own)
    let hasJumped = last.map { start - $0 > Self.tolerance } ?? false
    if let known = jump {
      if start - known.start <= Self.tolerance { jump = nil } else if hasJumped { jump = (known.start, now) }
    } else if let last, hasJumped {
      jump = (last, now)
    }
  }

  /// Why the catalog's time may be wrong, so long after this machine was started; nil if nothing says so.
  func doubt(sinceBoot now: Int64) -> ClockDoubt? {
    if abs(difference) > Self.tolerance { return .differs(seconds: Double(difference) / 1000) }
    guard let jump, let start, now - jump.at < Self.doubtTime else { return nil }
    return .jumped(seconds: Double(start - jump.start) / 1000)
  }
}
