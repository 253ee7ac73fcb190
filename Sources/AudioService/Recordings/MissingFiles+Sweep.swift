import Jobs
import Storage

extension MissingFiles {
  /// The outcome of a look at some recordings.
  struct Report: Equatable {
    /// Files that are missing or have a different size.
    var sounds = 0
    /// Waveforms and working copies that have to be rebuilt.
    var waveforms = 0
  }

  /// Checks the files of recordings and records what has changed. Calls `giveUp` for anything that has to be rebuilt.
  /// Blocks, for some microseconds per file.
  func sweep(
    _ recordings: [Recording], giveUp: (RecordingID, WaveformLoss) throws(StorageError) -> Void
  ) throws(StorageError) -> Report {
    var report = Report()
    for recording in recordings {
      if try settle(recording) != nil { report.sounds += 1 }
      guard let loss = loss(of: recording) else { continue }
      report.waveforms += 1
      try giveUp(recording.id, loss)
    }
    return report
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
