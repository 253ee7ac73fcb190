import Storage

/// Holds the rows against the files, at the start: a disk may have lost what the catalogue still tells of, and a backup
/// may have brought it back.
///
/// A recording without its sound gets a warning, its sound is answered with 410; one without its waveform's file has a
/// waveform that has failed, and can be built again.
struct MissingFiles: Sendable {
  let catalog: Catalog
  let store: MediaStore

  /// The warning that stands for a lost sound, and the code of the answer to whoever asks for it.
  static let code = "audio_missing"

  /// What was found in all recordings.
  struct Report: Equatable {
    var sounds = 0
    var waveforms = 0
  }

  /// Looks for the files of every recording, and writes down what has changed. Blocks, for some microseconds a file.
  func sweep() throws(StorageError) -> Report {
    var report = Report()
    var last: RecordingID?
    while true {
      let page = try catalog.recordings(limit: 500, before: last)
      for recording in page { try check(recording, &report) }
      guard let oldest = page.last else { return report }
      last = oldest.id
    }
  }

  private func check(_ recording: Recording, _ report: inout Report) throws(StorageError) {
    if let name = recording.audioFile {
      let isMissing = !store.hasFile(name, of: recording.id)
      if isMissing { report.sounds += 1 }
      if isMissing != recording.lacksSound { try catalog.update(recording.id) { $0.note(lacksSound: isMissing) } }
    }
    if let name = recording.workingFile, !store.hasFile(name, of: recording.id) {
      try loseWorkingCopy(of: recording.id, name: name)
    }
    if recording.waveformState == .ready, let name = recording.waveformFile, !store.hasFile(name, of: recording.id) {
      report.waveforms += 1
      try loseWaveform(of: recording.id, name: name)
    }
  }

  /// The working copy `name` is gone: building the waveform again makes it anew.
  private func loseWorkingCopy(of id: RecordingID, name: String) throws(StorageError) {
    try catalog.update(id) { recording in
      guard recording.workingFile == name else { return }
      recording.workingFile = nil
      recording.waveformState = .failed
      recording.waveformFile = nil
    }
  }

  /// The file `name` of a finished waveform is gone.
  func loseWaveform(of id: RecordingID, name: String) throws(StorageError) {
    try catalog.update(id) { recording in
      guard recording.waveformFile == name else { return }
      recording.waveformState = .failed
      recording.waveformFile = nil
    }
  }
}

extension Recording {
  fileprivate var lacksSound: Bool { warnings.contains { $0.code == MissingFiles.code } }

  fileprivate mutating func note(lacksSound: Bool) {
    warnings.removeAll { $0.code == MissingFiles.code }
    guard lacksSound else { return }
    warnings.append(
      RecordingWarning(code: MissingFiles.code, detail: "The recording's file is gone from the service's disk."))
  }
}
