import PresentRows
import Processing
import Storage
import Workers

@testable import Jobs

/// A lifecycle with a clock that the test sets.
final class LifecycleDriver {
  static let fence = WorkerFence(memoryBytes: 1, processorSeconds: 600, outputBytes: 1)

  var lifecycle: JobLifecycle
  var now = 0.0

  init(
    places: Int = 1, maximumAttempts: Int = 3, hasOtherNodes: Bool = false,
    runningLimit: @escaping @Sendable (Client) -> Int? = { _ in nil }
  ) {
    lifecycle = JobLifecycle(
      .init(
        places: places, maximumAttempts: maximumAttempts, retryPauseSeconds: 0.25, stallSeconds: 600,
        secondsPerProcessorSecond: 10), hasOtherNodes: hasOtherNodes, runningLimit: runningLimit)
  }

  /// Sends an event and returns short names of the actions.
  @discardableResult
  func on(_ event: JobLifecycle.Event) -> [String] {
    lifecycle.on(event, at: now).map { action in
      switch action {
      case .claim: "claim"
      case .prepare: "prepare"
      case .start(_, let idlePlaces): "start \(idlePlaces)"
      case .kill: "kill"
      case .record(_, .result): "result"
      case .record(_, .retry(_, let failure)): "retry \(failure.code)"
      case .record(_, .failure(let failure)): "failure \(failure.code)"
      case .record(_, .interruption): "interruption"
      case .record(_, .postponement(let failure)): "postponement \(failure.code)"
      case .hold(_, let seconds): "hold \(seconds)"
      case .pause(_, let seconds): "pause \(seconds)"
      case .clear: "clear"
      case .forget: "forget"
      case .watch(let seconds): "watch \(seconds)"
      case .drained: "drained"
      case .stopped: "stopped"
      }
    }
  }

  @discardableResult
  func submit(_ id: JobID, client: String = "") -> [String] {
    on(.submitted(id, WaveformJob.cost(samples: 1), Client(key: client)))
  }

  /// Takes a submitted job through its claim to the start of its child.
  func start(_ id: JobID, attempt: Int = 1, interruptions: Int = 0) {
    on(.claimed(id, attempts: attempt, failures: attempt - interruptions - 1))
    on(.prepared(id, Self.fence))
  }

  /// Submits and starts a job.
  func running() -> JobID {
    let id = JobID()
    submit(id)
    start(id)
    return id
  }
}
