import Jobs
import Storage
import Synchronization
import Terms

/// Passes the job queue's log on, and counts the jobs in it.
final class MeteredJobLog: JobLog {
  /// The jobs of one kind.
  private struct Figures: Sendable {
    let wait = Histogram.ofSeconds()
    let run = Histogram.ofSeconds()
  }

  private let log: ServiceLog
  private let figures = Dictionary(uniqueKeysWithValues: JobKind.allCases.map { ($0, Figures()) })
  private let ended = Mutex<[String: Int]>([:])
  private let onBeginning = Mutex<@Sendable (Job) -> Void> { _ in }

  init(_ log: ServiceLog) { self.log = log }

  /// From now on, calls `action` for each attempt at a job that begins on this node.
  func whenBegun(_ action: @escaping @Sendable (Job) -> Void) { onBeginning.withLock { $0 = action } }

  func began(_ job: Job) { onBeginning.withLock { $0 }(job) }

  func job(_ job: Job) {
    log.job(job)
    ended.withLock { $0["kind=\"\(job.kind.rawValue)\",state=\"\(job.state.rawValue)\"", default: 0] += 1 }
    guard let figures = figures[job.kind], let started = job.startedAt else { return }
    figures.wait.add(Double(started.milliseconds - job.createdAt.milliseconds) / 1000)
    guard let finished = job.finishedAt else { return }
    figures.run.add(Double(finished.milliseconds - started.milliseconds) / 1000)
  }

  func notice(_ message: String, _ metadata: [String: String]) { log.notice(message, metadata) }

  func failure(_ message: String, _ metadata: [String: String]) { log.failure(message, metadata) }

  /// The metrics of jobs that have ended.
  var text: String {
    var text = "# HELP stillwave_jobs_total Jobs that have ended.\n# TYPE stillwave_jobs_total counter\n"
    for (labels, count) in ended.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
      text += "stillwave_jobs_total{\(labels)} \(count)\n"
    }
    let names = [
      ("stillwave_job_wait_seconds", "Time from a job's request to its last attempt.", \Figures.wait),
      ("stillwave_job_run_seconds", "Time of a job's last attempt.", \Figures.run),
    ]
    for (name, help, part) in names {
      text += "# HELP \(name) \(help)\n# TYPE \(name) histogram\n"
      for (kind, figures) in figures.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
        text += figures[keyPath: part].lines(name, labels: "kind=\"\(kind.rawValue)\"")
      }
    }
    return text
  }
}
