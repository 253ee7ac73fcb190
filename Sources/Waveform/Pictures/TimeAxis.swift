// The positions of a time axis's ticks, and their labels.
//
// The step between labels is the smallest of 1, 2, 5 × 10^k µs below a second, then 1, 2, 5, 10, 15, 30 s, 1, 2, 5, 10,
// 15, 30 min, 1, 2, 3, 6, 12, 24 h, and days in 1, 2, 5 × 10^k, that leaves room for the labels. Between labels are
// minor ticks at a smaller step from the same list. All are whole microseconds, so rounding errors can't accumulate.
//
//   step ≥ 1 s   mm:ss, or h:mm:ss if the window reaches an hour
//   below        the same with the step's number of decimals; s.mmm if the window ends within a minute

/// The ticks of a window.
struct TimeAxis: Equatable {
  struct Tick: Equatable {
    /// In seconds.
    let time: Double
    /// The label; nil for a minor tick.
    let label: String?
  }

  let ticks: [Tick]

  private static let second: Int64 = 1_000_000
  private static let steps: [Int64] = {
    var steps: [Int64] = []
    for decade in [1, 10, 100, 1000, 10_000, 100_000] as [Int64] { steps += [decade, 2 * decade, 5 * decade] }
    steps += [1, 2, 5, 10, 15, 30].map { $0 * second }
    steps += [1, 2, 5, 10, 15, 30].map { $0 * 60 * second }
    steps += [1, 2, 3, 6, 12].map { $0 * 3600 * second }
    for decade in [1, 10, 100, 1000, 10_000] as [Int64] { steps += [1, 2, 5].map { $0 * decade * 86_400 * second } }
    return steps
  }()

  /// Computes the ticks from `start` to `end` (in seconds) over `width` CSS pixels, with labels at least `spacing`
  /// apart.
  init(start: Double, end: Double, width: Double, spacing: Double = 80) {
    // The limit is about ten thousand years; beyond that, microseconds overflow 64 bits.
    guard end > start, end < 1e12, width > 0 else {
      ticks = []
      return
    }
    let perPixel = (end - start) / width
    func step(atLeast pixels: Double) -> Int64 {
      Self.steps.first { Double($0) / 1e6 >= pixels * perPixel } ?? Self.steps[Self.steps.count - 1]
    }
    let major = step(atLeast: spacing)
    // The smallest step that divides the labels' step; at most five ticks fit between two labels.
    let minor = Self.steps.first {
      $0 < major && major % $0 == 0 && major / $0 <= 6 && Double($0) / 1e6 >= 6 * perPixel
    }
    let fine = minor ?? major
    // Includes a tick on the edge, however its seconds were rounded.
    let first = Int64((start * 1e6 / Double(fine) - 1e-4).rounded(.up))
    let last = Int64((end * 1e6 / Double(fine) + 1e-4).rounded(.down))
    guard first <= last else {
      ticks = []
      return
    }
    ticks = (first...last).map { index in
      let time = index * fine
      let isMajor = time % major == 0
      return Tick(
        time: Double(time) / 1e6, label: isMajor ? Self.label(time, step: major, end: end) : nil)
    }
  }

  private static func label(_ time: Int64, step: Int64, end: Double) -> String {
    let seconds = time / second
    var text: String
    if end < 60 && step < second {
      text = "\(seconds)"
    } else if end >= 3600 {
      text = "\(seconds / 3600):\(twoDigits(seconds / 60 % 60)):\(twoDigits(seconds % 60))"
    } else {
      text = "\(twoDigits(seconds / 60)):\(twoDigits(seconds % 60))"
    }
    var unit = second
    if step < second { text += "." }
    while step % unit != 0 {
      unit /= 10
      text += "\(time / unit % 10)"
    }
    return text
  }

  private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
