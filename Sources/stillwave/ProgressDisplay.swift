import ArgumentParser
import Glibc
import Processing
import Terms
import Workers

/// How a command shows its progress.
enum ProgressStyle: String, ExpressibleByArgument, CaseIterable {
  /// A bar if standard error is a terminal, otherwise nothing.
  case auto
  case bar, json, none
}

/// Shows a command's progress and outcome in the chosen style.
struct ProgressDisplay {
  private let style: ProgressStyle
  private let start = Clock.system.now
  private var lastShown: Clock.Instant?
  private var lastFraction = -1.0

  init(_ style: ProgressStyle) {
    self.style = style == .auto ? (isatty(STDERR_FILENO) == 1 ? .bar : .none) : style
  }

  /// Whether programs read the progress.
  var isJSON: Bool { style == .json }

  /// Ends the line of the bar, if there is one.
  func endLine() {
    if style == .bar { writeAll(Array("\n".utf8), to: STDERR_FILENO) }
  }

  /// Shows the progress, at most forty times a second, but every step of 1 %.
  mutating func show(_ progress: WorkerProgress) {
    guard style != .none else { return }
    let now = Clock.system.now
    if progress.fraction < 1, let lastShown, now - lastShown < .milliseconds(25),
      progress.fraction - lastFraction < 0.01
    {
      return
    }
    (lastShown, lastFraction) = (now, progress.fraction)
    if style == .json {
      StandardStreams.write(WorkerReport.progress(progress).line())
    } else {
      draw(progress.fraction, elapsed: now - start)
    }
  }

  /// Writes the last line: the result. Warnings are part of it or go to standard error.
  func finish(_ report: WorkerReport) {
    guard style != .json else { return StandardStreams.write(report.line()) }
    endLine()
    for warning in report.warnings where warning.isAboutWork { StandardStreams.complain("warning: \(warning.detail)") }
  }

  /// Reports the failure, on standard output for programs or on standard error for people.
  func fail(_ failure: WorkerFailure) {
    if style == .json {
      StandardStreams.write(WorkerReport.failed(failure).line())
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

// MARK: Working

extension ProgressDisplay {
  /// Runs `work` with a display and shows the outcome, if it has one. Exits with status 0 only if the output is
  /// complete.
  static func run(_ style: ProgressStyle, _ work: (inout ProgressDisplay) throws -> WorkerReport?) throws {
    var display = ProgressDisplay(style)
    defer { TemporaryFiles.shared.removeAll() }
    do { if let report = try work(&display) { display.finish(report) } } catch {
      display.fail(try Self.failure(error, namesPaths: style != .json))
      throw ExitCode.failure
    }
  }

  /// Rethrows errors that aren't failures of the work.
  static func failure(_ error: any Error, namesPaths: Bool) throws -> WorkerFailure {
    switch error {
    case let error as ProcessingError: WorkerFailure(error, namesPaths: namesPaths)
    case let error as OutputFailure: WorkerFailure(code: "io_error", detail: error.description, retry: true)
    case let error as CommandFailure: error.failure
    default: throw error
    }
  }

  /// Performs a request in this process. Starts other programs first, because the fence prevents that, and enters the
  /// fence before it reads anything untrusted, except the first bytes, which show the format.
  mutating func perform(_ request: WorkerRequest) throws -> WorkerReport {
    // Checked here, where the path is known: later errors know only descriptors.
    guard unsafe access(request.source, R_OK) == 0 else {
      throw ProcessingError.system(operation: "open", path: request.source, errno: errno)
    }
    // Before ffmpeg is started, which inherits it.
    if let group = request.group { try OwnProcess.join(group: group) }
    let begun = try request.begin()
    if let fence = request.fence {
      try enter(fence, for: request)
      guard Interruption.endWithStandardInput() else {
        throw ProcessingError.system(operation: "pthread_create", path: request.source, errno: EAGAIN)
      }
    } else {
      Interruption.watch()
    }
    if let folder = request.folder { try WorkFolderLock.take(folder) }
    defer { if request.fence != nil { request.removeUnusedOutputs() } }
    return try begun { show($0) }
  }

  private func enter(_ fence: WorkerFence, for request: WorkerRequest) throws(ProcessingError) {
    // libsndfile keeps the packets of ALAC in the current folder until it knows their number, and a worker can write
    // only to this folder.
    if let folder = request.folder, folder.hasPrefix("/"), request.source.hasPrefix("/") { unsafe _ = chdir(folder) }
    let outputs = try request.createOutputs()
    // One waits for the end of standard input.
    let threads = 1 + request.helperCount
    let refusal = fence.enter(source: request.source, folder: request.folder, outputs: outputs, threads: threads)
    guard let refusal else { return }
    if style == .json { StandardStreams.write(WorkerReport.unfenced(refusal).line()) }
    throw .system(operation: "fence", path: request.source, errno: refusal)
  }
}

extension WorkerReport {
  /// What its work found wrong or left out.
  var warnings: [Warning] {
    switch self {
    case .analyzed(let analysis): analysis.warnings
    case .denoised(let outcome): outcome.warnings
    case .profileLearnt(let outcome): outcome.warnings
    default: []
    }
  }
}
