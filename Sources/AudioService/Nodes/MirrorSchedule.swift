/// When a node fetches more of a waveform that another one builds: only while somebody looks, one fetch at a time, and
/// at most once a second. It has no clock; times are seconds that never decrease.
///
/// Each fetch gets the upper block being filled again, besides the new blocks. So if there are few new blocks, it waits
/// some seconds for more.
struct MirrorSchedule: Sendable {
  /// What to do next.
  enum Action: Equatable {
    /// Nothing, until the next event.
    case nothing
    /// Fetch, then report `fetched`.
    case fetch
    /// Report `tick` after this many seconds.
    case wait(seconds: Double)
  }

  /// How far a copy is behind.
  struct Lag: Sendable {
    /// The number of blocks that it lacks.
    var blocks: Int64
    /// Whether the original has all frames, and the copy hasn't.
    var isEnd: Bool
  }

  /// Seconds after the last look for which fetches go on.
  static let watchedSeconds = 5.0
  /// Seconds between two fetches.
  static let pauseSeconds = 1.0
  /// Seconds for which fewer than `manyBlocks` new blocks wait.
  static let patienceSeconds = 4.0
  static let manyBlocks: Int64 = 16
  /// Seconds after a failure without another fetch.
  static let retrySeconds = 5.0

  /// Whether somebody has looked within the last seconds, so that further events are awaited.
  private(set) var isAwake = false
  private var lookedAt = -Double.infinity
  private var fetchedAt = -Double.infinity
  private var notBefore = -Double.infinity

  /// Somebody looks at the waveform.
  mutating func looked(at now: Double, _ lag: Lag) -> Action {
    lookedAt = now
    guard !isAwake else { return .nothing }
    isAwake = true
    return next(at: now, lag)
  }

  /// The time that `wait` asked for has passed.
  mutating func tick(at now: Double, _ lag: Lag) -> Action {
    guard now - lookedAt <= Self.watchedSeconds else {
      isAwake = false
      return .nothing
    }
    return next(at: now, lag)
  }

  /// A fetch has ended.
  mutating func fetched(at now: Double, successfully: Bool) -> Action {
    notBefore = now + (successfully ? Self.pauseSeconds : Self.retrySeconds)
    return .wait(seconds: Self.pauseSeconds)
  }

  private mutating func next(at now: Double, _ lag: Lag) -> Action {
    let isDue = lag.isEnd || lag.blocks >= Self.manyBlocks || lag.blocks > 0 && now - fetchedAt >= Self.patienceSeconds
    guard isDue, now >= notBefore else { return .wait(seconds: Self.pauseSeconds) }
    fetchedAt = now
    return .fetch
  }
}
