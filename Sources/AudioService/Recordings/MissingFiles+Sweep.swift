import Jobs
import Storage

extension MissingFiles {
  /// The outcome of a sweep over all recordings.
  struct Report: Equatable {
    /// Files that are missing or have a different size.
    var sounds = 0
    /// Waveforms and working copies that have to be rebuilt.
    var waveforms = 0
  }

  /// Checks the files of every recording and records what has changed. Calls `giveUp` for anything that has to be
  /// rebuilt. Blocks, for some microseconds per file.
  func sweep(giveUp: (RecordingID, WaveformLoss) throws -> Void) throws -> Report {
    var report = Report()
    var last: RecordingID?
    while true {
      let page = try catalog.recordings(limit: 500, before: last)
      for recording in page {
        if try settle(recording) != nil { report.sounds += 1 }
        guard let loss = loss(of: recording) else { continue }
        report.waveforms += 1
        try giveUp(recording.id, loss)
      }
      guard let oldest = page.last else { return report }
      last = oldest.id
    }
  }

  private func loss(of recording: Recording) -> WaveformLoss? {
    if let key = recording.workingKey, hasLostWorkingCopy(recording) { return .workingCopy(key) }
    if recording.waveformState == .ready, let key = recording.waveformKey, objects.look(at: key) == .absent {
      return .waveform(key, nil)
    }
    return nil
  }
}

extension MissingFiles.Fault {
  func error(_ id: RecordingID) -> ServiceError {
    switch self {
    case .missing: .audioMissing(id)
    case .damaged: .audioDamaged(id)
    }
  }
}
