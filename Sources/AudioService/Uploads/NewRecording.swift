import Jobs
import Processing
import Storage

/// The rows made from an upload: a recording and the job that builds its waveform.
struct NewRecording: Sendable {
  let recording: Recording
  let job: Job

  /// Creates the rows for a file that is already in the recording's folder. `name` is the name that the client gave.
  init(_ id: RecordingID, _ stored: StoredFile, name: String?, _ probe: Probe, for client: Client) {
    job = Job(kind: .waveform, recording: id, client: client.key)
    recording = Recording(
      id: id, name: RecordingName(name, extension: probe.fileExtension).text, bytes: stored.bytes,
      sha256: stored.sha256, format: RecordingFormat(probe), waveformJob: job.id, audioFile: stored.name,
      media: probe.media?.json,
      warnings: probe.warnings.map { RecordingWarning(code: $0.code, detail: $0.detail) })
  }

  /// The name of the recording's file on disk.
  static func fileName(_ probe: Probe) -> String { "audio.\(probe.fileExtension)" }
}

extension RecordingFormat {
  init(_ probe: Probe) {
    self.init(
      container: probe.container, codec: probe.codec, sampleRate: probe.sampleRate, channels: probe.channels,
      frames: probe.frames, estimatedFrames: probe.estimatedFrames,
      duration: probe.frames.map { Double($0) / Double(probe.sampleRate) })
  }
}
