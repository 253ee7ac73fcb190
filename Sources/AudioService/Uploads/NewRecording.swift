import Jobs
import Storage
import Workers

/// The rows made from an upload: a recording and the job that builds its waveform.
struct NewRecording: Sendable {
  let recording: Recording
  let job: Job

  /// Creates the rows for a file that is already in the recording's folder. `name` is the name that the client gave.
  ///
  /// `job`: a job that was made before; nil for a new one.
  init(
    _ id: RecordingID, _ stored: StoredFile, name: String?, _ probe: Probe, for client: Client, at time: Timestamp,
    job: Job? = nil
  ) {
    var job = job ?? Job(kind: .waveform, recording: id, createdAt: time, client: client.key)
    job.expectedBytes = ExpectedBytes.made(of: probe.shape, probe.media, bytes: stored.bytes)
    self.job = job
    recording = Recording(
      id: id, name: RecordingName(name, extension: probe.fileExtension).text, createdAt: time, bytes: stored.bytes,
      sha256: stored.sha256, format: probe.shape, waveformJob: job.id, audioKey: stored.key,
      media: probe.media?.json, warnings: probe.warnings)
  }

  /// The name of the recording's file on disk.
  static func fileName(_ probe: Probe) -> String { "audio.\(probe.fileExtension)" }
}
