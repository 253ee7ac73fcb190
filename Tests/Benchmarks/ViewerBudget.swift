import Foundation

/// What the page costs in Chromium for a two-hour recording: script, tasks, first pixels, memory, bytes. Python drives
/// the browser; see Tests/ViewerTests/budget.py, which prints the rows.
struct ViewerBudget {
  let binary: String
  /// How long to scroll while watching memory.
  let minutes: Double

  /// Prints a row per figure; returns how many missed their bound.
  func run() throws -> Int {
    print("\nThe viewer in Chromium, two hours with two waveforms")
    fflush(nil)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "PYTHONDONTWRITEBYTECODE=1", "python3", "Tests/ViewerTests/run.py", "budget", "--binary", binary, "--times",
      "--minutes", "\(minutes)",
    ]
    try process.run()
    process.waitUntilExit()
    // A status above 100 would look like a crash.
    guard process.terminationReason == .exit, process.terminationStatus <= 100 else {
      throw BenchmarkFailure(what: "the viewer's budget could not be measured")
    }
    return Int(process.terminationStatus)
  }
}
