import Storage
import Workers

/// A waveform that is built while an upload is probed, before the recording has a row: a job that is over before it
/// could wait. If it isn't built, the job is queued like any other. Until the row of its attempt is written, the
/// recording's folder is marked as unfinished.
package struct EarlyWaveform: Sendable {
  /// The job, as it would wait.
  package let job: Job
  /// The work folder; see `MediaStore.takeIntakeFolder`.
  package let folder: String
  private let token: AttemptToken

  /// Creates the job for a new recording at the present `time` by the catalog's clock.
  package init(of recording: RecordingID, for client: Client, in folder: String, at time: Timestamp) {
    job = Job(kind: .waveform, recording: recording, createdAt: time, client: client.key)
    token = AttemptToken(job: job.id, attempt: 1, nonce: AttemptToken.newNonce())
    self.folder = folder
  }

  private func path(_ fileExtension: String) -> String { "\(folder)/\(token.shortName).\(fileExtension)" }

  /// The work for the worker.
  package var work: IntakeWork {
    IntakeWork(pyramid: path("pyramid"), soundMap: path("map"), labels: path("labels"))
  }

  /// The files that the worker has made: the waveform and the map. `audio` is the name of the recording's file.
  package func files(audio: String) -> [MadeFile] {
    [
      MadeFile(path: work.pyramid, name: token.pyramidName, isNeeded: true),
      MadeFile(path: work.soundMap, name: ReaderRequest.mapPath(of: audio), isNeeded: false),
    ]
  }

  /// Notes in the recording that its waveform is ready. `lengths` are those of `files`.
  package func note(_ analysis: Analysis, lengths: [Int64?], in recording: inout Recording) {
    recording.mapBytes = lengths[1]
    WaveformJob.note(analysis, pyramid: token.waveformKey(of: recording.id), bytes: lengths[0], in: &recording)
  }

  /// Inserts the recording with its waveform, once its files are durable. Returns the job, which has succeeded.
  package func insert(
    _ recording: Recording, into catalog: TenantCatalog, _ scratch: Scratch, answer: StoredResponse?,
    spending uploadToken: UploadToken?, within limits: StoredLimits?
  ) throws(StorageError) -> Job {
    try catalog.insert(
      recording, finished: job, by: token, with: RowJSON.text(JobResult(recording: recording.id)),
      adding: WaveformJob.embeddedTracks(of: recording.id, in: work.labels, scratch, at: catalog.time),
      trackLimit: LabelTrack.limit,
      answer: answer, spending: uploadToken, within: limits)
  }
}
