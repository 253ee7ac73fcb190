// What has reached its age is deleted by the catalog's clock, and can't be had back. A standby that takes over with a
// clock that is a month ahead would have everything deleted at once. So a second opinion counts, too:
//
//   this machine's clock              the two may differ by `toleranceSeconds`
//   the time since the machine began  goes on by itself, whatever clock is set: if the catalog's time has gained more
//                                     than that since it was heard last, it counts as wrong for `doubtSeconds`, so that
//                                     somebody can look, or until it is set right again
//
// While the service doesn't run, nothing watches. So the catalog keeps what was heard last (`ClockMemory`). If the
// machine has run ever since, the time since it began still says how much time has passed. If not, nothing does: the
// machine may have been off, or its clock may be wrong now. Then nothing is deleted for as long as seems to have
// passed, at most for `doubtSeconds`, so that even on a machine that is on for half of each day, deletions happen.
//
// A clock that is behind deletes nothing early. If it is set right, it jumps as well, and deletions wait that long.

/// Why the catalog's time may be wrong.
package enum ClockDoubt: Sendable, Equatable {
  /// It is so many seconds ahead of this machine's clock; behind it, if negative.
  case differs(seconds: Double)
  /// It has jumped ahead by so many seconds within the last day.
  case jumped(seconds: Double)
  /// It is so many seconds later than what was heard last, before this machine was started.
  case unproven(seconds: Double)
}

/// What a catalog keeps of its clock while no service runs, in JSON. Times are in milliseconds.
struct ClockMemory: Codable, Equatable {
  /// What the catalog's clock said last.
  var heard: Int64
  /// Which start of which machine that was after, and how long after it; "" if unknown.
  var boot: String
  var sinceBoot: Int64
  /// How far the clock had jumped ahead, and for how much longer that was to be doubted; 0 if it wasn't.
  var lead: Int64 = 0
  var doubtLeft: Int64 = 0
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
  /// `start` before it jumped, and until when the jump is doubted, since the machine was started. `isProven`: whether
  /// the machine ran meanwhile.
  private var jump: (start: Int64, until: Int64, isProven: Bool)?
  /// How far the catalog's clock is ahead of this machine's.
  private(set) var difference: Int64 = 0

  /// Takes in what both clocks say, so long after this machine was started.
  mutating func hear(_ catalog: Int64, own: Int64, sinceBoot now: Int64) {
    let (last, start) = (self.start, catalog - now)
    (self.start, difference) = (start, catalog - own)
    let hasJumped = last.map { start - $0 > Self.tolerance } ?? false
    if let known = jump {
      if start - known.start <= Self.tolerance {
        jump = nil
      } else if hasJumped {
        jump = (known.start, now + Self.doubtTime, true)
      }
    } else if let last, hasJumped {
      jump = (last, now + Self.doubtTime, true)
    }
  }

  /// Compares what the catalog's clock says with what it said before this process was started. `boot` is this start of
  /// this machine.
  mutating func resume(_ memory: ClockMemory, _ catalog: Int64, boot: String, sinceBoot now: Int64) {
    let isProven = memory.boot == boot && !boot.isEmpty && memory.sinceBoot <= now
    let last = memory.heard - (isProven ? memory.sinceBoot : now)
    let start = catalog - now
    self.start = start
    let isNew = start - last > Self.tolerance
    let wait = max(memory.doubtLeft, isNew ? isProven ? Self.doubtTime : min(start - last, Self.doubtTime) : 0)
    // A jump that was heard since this process began is proven.
    guard jump == nil, start - (last - memory.lead) > Self.tolerance, wait > 0 else { return }
    jump = (last - memory.lead, now + min(wait, Self.doubtTime), isProven)
  }

  /// What is to be known after the next start; nil if nothing was heard.
  func memory(boot: String, sinceBoot now: Int64) -> ClockMemory? {
    guard let start else { return nil }
    var memory = ClockMemory(heard: start + now, boot: boot, sinceBoot: now)
    if let jump, now < jump.until { (memory.lead, memory.doubtLeft) = (start - jump.start, jump.until - now) }
    return memory
  }

  /// Why the catalog's time may be wrong, so long after this machine was started; nil if nothing says so.
  func doubt(sinceBoot now: Int64) -> ClockDoubt? {
    if abs(difference) > Self.tolerance { return .differs(seconds: Double(difference) / 1000) }
    guard let jump, let start, now < jump.until else { return nil }
    let seconds = Double(start - jump.start) / 1000
    return jump.isProven ? .jumped(seconds: seconds) : .unproven(seconds: seconds)
  }
}
