import Storage
import Terms
import Workers

/// The result of a worker that succeeded, to be stored in rows and files.
struct JobOutcome {
  let job: Job
  let token: AttemptToken
  let report: WorkerReport
  let request: WorkerRequest
  let catalog: Catalog
  let blobs: Blobs
  let scratch: Scratch
  let settings: JobSettings

  /// What the recording's tenant may store. The service's own work replaces what has been damaged, and isn't limited.
  var storedLimits: StoredLimits? { job.client.isEmpty ? nil : settings.clientLimits.stored(job.tenant) }

  /// Makes the files durable, then finishes the job and the recording in one transaction, unless the attempt has lost
  /// its job: then its files are unwanted. Returns nil if the report makes no sense for this work. Throws
  /// `.limitReached` if the tenant may not store that much.
  func record() throws(StorageError) -> Fenced<Job>? { try job.kind.definition.record(self) }

  /// Adds a file to the folder of the job's recording. Throws if the recording has been deleted meanwhile and its
  /// folder is gone; a folder that still exists is removed later, with everything in it.
  func add(_ path: String, as name: String) throws(StorageError) -> StoredFile {
    try blobs.put(path, as: ObjectKey(job.recording, name), makesFolder: false)
  }

  /// Finishes the job and the recording that has its result.
  func finish(
    _ result: JobResult, adding tracks: [(track: LabelTrack, chunks: [LabelChunk])] = [],
    _ change: @Sendable (inout Recording) -> Void = { _ in }
  ) throws(StorageError) -> Fenced<Job> {
    try catalog.finish(
      token, with: RowJSON.text(result), change, adding: tracks, limit: LabelTrack.limit, within: storedLimits)
  }

  /// The outcome if the recording has been deleted, which has canceled the job.
  func refused() throws(StorageError) -> Fenced<Job> { .refused(try catalog.job(job.id)) }
}

extension AttemptToken {
  /// Returns the name of one of the attempt's files in a recording's folder.
  func fileName(_ kind: String, _ fileExtension: String) -> String { "\(kind)-\(name).\(fileExtension)" }

  /// The name of the waveform that the attempt writes in the recording's folder.
  var pyramidName: String { fileName("waveform", "pyramid") }

  /// Returns the key of the waveform that the attempt writes for a recording. The recording's row has it once the job
  /// has succeeded.
  package func waveformKey(of recording: RecordingID) -> ObjectKey { ObjectKey(recording, pyramidName) }
}

extension Warning {
  /// The code of the warning about a damaged waveform, until the waveform has been rebuilt.
  package static let damagedWaveformCode = "waveform_damaged"
}

extension Recording {
  /// What the probe found in a file that needs a working copy; nil for other files.
  package var mediaFacts: MediaFacts? { media.flatMap(MediaFacts.init(json:)) }

  /// The file extension of the original file.
  package var fileExtension: String? { mediaFacts?.fileExtension ?? audioFormat?.fileExtension }

  /// The media type of the original file, as audio.
  package var mediaType: String { mediaFacts?.mediaType ?? audioFormat?.mediaType ?? "application/octet-stream" }

  /// The format that the audio is read in. FLAC's bit depth isn't stored and counts as 16.
  package var audioFormat: AudioFormat? {
    if media != nil { return mediaFacts?.workingFormat }
    guard let container = AudioContainer(rawValue: format.container),
      let codec = AudioCodec.allCases.first(where: { $0.name == format.codec && $0 != .flacS8 })
    else { return nil }
    return AudioFormat(container: container, codec: codec, sampleRate: format.sampleRate, channels: format.channels)
  }
}
