import ArgumentParser
import Glibc
import Processing

/// How a command shows its progress.
enum ProgressStyle: String, ExpressibleByArgument, CaseIterable {
  /// A bar where the standard error is a terminal, else nothing.
  case auto
  case bar, json, none
}

/// Shows a command's progress and how it ended, in the chosen style.
struct ProgressDisplay {
  private let style: ProgressStyle
  private let start = ContinuousClock.now
  private var lastShown: ContinuousClock.Instant?
  private var lastFraction = -1.0

  init(_ style: ProgressStyle) {
    self.style = style == .auto ? (isatty(STDERR_FILENO) == 1 ? .bar : .none) : style
  }

  /// At most forty lines or redraws a second, and every step of a hundredth.
  mutating func show(_ progress: WorkerProgress) {
    guard style != .none else { return }
    let now = ContinuousClock.now
    if progress.fraction < 1, let lastShown, now - lastShown < .milliseconds(25),
      progress.fraction - lastFraction < 0.01
    {
      return
    }
    (lastShown, lastFraction) = (now, progress.fraction)
    if style == .json {
      var report = WorkerReport()
      report.progress = progress
      StandardStreams.write(report.line())
    } else {
      draw(progress.fraction, elapsed: now - start)
    }
  }

  /// The kernel has refused a part of the fence that it has, with this errno: nothing is done.
  func tellUnfenced(_ errno: Int32) {
    guard style == .json else { return }
    var report = WorkerReport()
    report.unfenced = errno
    StandardStreams.write(report.line())
  }

  /// The last line: what was found or made. Warnings are part of it, or go to standard error.
  func finish(_ report: WorkerReport) {
    guard style != .json else { return StandardStreams.write(report.line()) }
    if style == .bar { writeAll(Array("\n".utf8), to: STDERR_FILENO) }
    for warning in (report.analysis?.warnings ?? []) + (report.denoised?.warnings ?? []) {
      StandardStreams.complain("warning: \(warning.detail)")
    }
  }

  /// Tells the failure, on standard output for machines, on standard error for people.
  func fail(_ failure: WorkerFailure) {
    if style == .json {
      var report = WorkerReport()
      report.error = failure
      StandardStreams.write(report.line())
    } else {
      if style == .bar, lastShown != nil { writeAll(Array("\n".utf8), to: STDERR_FILENO) }
      StandardStreams.complain(failure.detail)
    }
  }

  private func draw(_ fraction: Double, elapsed: Duration) {
    let width = 40
    let done = Int(fraction * Double(width))
    let bar = String(repeating: "█", count: done) + String(repeating: "░", count: width - done)
    let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
    let left = fraction > 0 && fraction < 1 ? "  \(Int((seconds / fraction - seconds).rounded(.up))) s left" : ""
    writeAll(Array("\r\(bar) \(Int(fraction * 100)) %\(left)\u{1B}[K".utf8), to: STDERR_FILENO)
  }
}
