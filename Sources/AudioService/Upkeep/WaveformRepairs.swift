import Jobs
import Storage
import Synchronization
import Terms
import Waveform

/// A lost or damaged file that can be made again from the audio.
enum WaveformLoss: Sendable, Equatable {
  /// The pyramid with that key; with a nil error, it's missing.
  case waveform(ObjectKey, WaveformError?)
  /// The working copy with that key is missing or isn't what was stored.
  case workingCopy(ObjectKey)
  /// A pyramid that was discarded earlier, when the queue had no room for a job to rebuild it.
  case owed(ObjectKey)
}

/// Thrown when a request finds a damaged file.
struct SpoiledWaveform: Error {
  let waveform: OpenWaveform
  /// nil while the waveform grows: its job will report the damage.
  let loss: WaveformLoss?
}

/// Discards damaged waveforms and working copies, and has a job rebuild each, once.
///
/// “Once” means at most one such job per recording and hour. A single damaged file is repaired without a client's
/// request. If the new file is damaged too, or the job fails, the waveform stays `failed` until a client requests a
/// rebuild. The hour is kept in memory only, because a restart is a good time to try again.
///
/// The row records a rebuild that is due. While the queue is full, the waveform is `failed` but keeps its file's name,
/// and the next request that finds it tries again. A waveform that isn't to be rebuilt has no file.
final class WaveformRepairs: Sendable {
  /// The code of the warning about a discarded waveform, shown until it's rebuilt.
  static let code = Warning.damagedWaveformCode

  private static let pauseSeconds = 3600.0

  private let catalog: Catalog
  private let blobs: Blobs
  private let runner: JobRunner
  private let log: ServiceLog
  private let begun = Mutex<[RecordingID: Clock.Instant]>([:])

  init(catalog: Catalog, blobs: Blobs, runner: JobRunner, log: ServiceLog) {
    self.catalog = catalog
    self.blobs = blobs
    self.runner = runner
    self.log = log
  }

  /// Discards a lost file if the row still names it, so that only one of two requests that find it does. Blocks.
  func giveUp(_ id: RecordingID, _ loss: WaveformLoss) throws(StorageError) {
    guard let recording = try catalog.recording(id), recording.names(loss) else { return }
    let isSound = try MissingFiles(catalog: catalog, objects: blobs.store).settle(recording) == nil
    let mayBuild = isSound && (loss.isOutdated || !wasBuiltLately(id))
    // No client asked for the job: it counts as the service's own.
    let room = mayBuild ? try? runner.reserve(for: .unknown) : nil
    let job = room.map { _ in Job(kind: .waveform, recording: id, createdAt: catalog.time, client: Client.unknown.key) }
    let changed = try catalog.update(id, if: { $0.names(loss) }, inserting: job) { recording in
      recording.forget(loss)
      if let job {
        (recording.waveformState, recording.waveformJob, recording.waveformKey) = (.queued, job.id, nil)
      } else {
        recording.waveformState = .failed
        if !mayBuild { recording.waveformKey = nil }
      }
    }
    guard let changed else { return }
    log.failure(
      "a waveform could not be rebuilt",
      [
        "recording": id.text, "reason": loss.reason, "job": job?.id.text ?? "none",
      ])
    // While a rebuild is due, the row keeps the file's name to record that.
    if changed.waveformKey == nil || !loss.isWaveform { blobs.delete(loss.key) }
    guard let job else { return }
    if !loss.isOutdated { noteBuilding(id) }
    runner.submit(job, source: changed, room: room)
  }

  private func wasBuiltLately(_ id: RecordingID) -> Bool {
    begun.withLock { $0[id].map { catalog.clock.seconds(since: $0) < Self.pauseSeconds } ?? false }
  }

  private func noteBuilding(_ id: RecordingID) {
    begun.withLock { begun in
      if begun.count >= 1024 { begun = begun.filter { catalog.clock.seconds(since: $0.value) < Self.pauseSeconds } }
      begun[id] = catalog.clock.now
    }
  }
}

extension WaveformLoss {
  fileprivate var key: ObjectKey {
    switch self {
    case .waveform(let key, _), .workingCopy(let key), .owed(let key): key
    }
  }

  fileprivate var isWaveform: Bool {
    if case .workingCopy = self { false } else { true }
  }

  /// Whether the file has the format of another version, which isn't damage.
  fileprivate var isOutdated: Bool {
    if case .waveform(_, .outdatedPyramid) = self { true } else { false }
  }

  /// The reason for the log.
  fileprivate var reason: String {
    switch self {
    case .waveform(_, nil): "its file is gone"
    case .waveform(_, let error?): logText(error)
    case .workingCopy: "the working copy is gone or has changed"
    case .owed: "it was given up before"
    }
  }

  /// The warning for clients; nil if nothing was damaged.
  fileprivate var warning: Warning? {
    let what =
      switch self {
      case .waveform(_, .outdatedPyramid), .owed: nil as String?
      case .waveform(_, nil): "The waveform's file was gone from the service's disk"
      case .waveform: "The waveform's file was damaged on the service's disk"
      case .workingCopy: "The recording's working copy was lost or damaged on the service's disk"
      }
    return what.map { Warning(code: WaveformRepairs.code, detail: $0 + "; it has to be built again.") }
  }
}

extension Recording {
  /// Whether the row still names the lost file. A waveform due for a rebuild has failed and has a file.
  fileprivate func names(_ loss: WaveformLoss) -> Bool {
    switch loss {
    case .waveform(let key, _), .owed(let key): waveformKey == key && [.ready, .failed].contains(waveformState)
    case .workingCopy(let key): workingKey == key && [.ready, .failed].contains(waveformState)
    }
  }

  fileprivate mutating func forget(_ loss: WaveformLoss) {
    if case .owed = loss { return }
    warnings.removeAll { $0.code == WaveformRepairs.code }
    if let warning = loss.warning { warnings.append(warning) }
    if !loss.isWaveform { workingKey = nil }
  }
}
