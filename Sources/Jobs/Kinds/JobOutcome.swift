import AudioIO
import Media
import Processing
import Storage
import Terms

/// The result of a worker that succeeded, to be stored in rows and files.
struct JobOutcome {
  let job: Job
  let report: WorkerReport
  let request: WorkerRequest
  let catalog: Catalog
  let store: MediaStore
  let settings: JobSettings

  /// Makes the files durable, then finishes the job and the recording in one transaction. Returns the job as stored, or
  /// nil if it has been deleted. A job that was canceled meanwhile stays canceled, and its files are removed with their
  /// folder.
  func record() throws(StorageError) -> Job? { try job.kind.definition.record(self) }

  /// Adds a file to the folder of the job's recording. Throws if the recording has been deleted meanwhile and its
  /// folder is gone; a folder that still exists is removed later, with everything in it.
  func add(_ path: String, as name: String) throws(StorageError) -> StoredFile {
    try store.adopt(path: path, as: job.recording, name: name, makesFolder: false)
  }

  /// Finishes the job and the recording named in its result. A job that was canceled meanwhile changes nothing. If the
  /// recording has been deleted, removes the folder that adding files has created again.
  func finish(
    _ result: JobResult, adding tracks: [(track: LabelTrack, chunks: [LabelChunk])] = [],
    _ change: (inout Recording) -> Void
  ) throws(StorageError) -> Job? {
    var isWanted = false
    let ended = try catalog.finish(
      job: job.id, { isWanted = $0.succeed(with: result) }, recording: result.recording,
      { if isWanted { change(&$0) } }, adding: { isWanted ? tracks : [] }, limit: LabelTrack.limit)
    if ended.recording == nil, result.recording == job.output { try store.remove(result.recording) }
    return ended.job
  }
}

extension Job {
  /// The name of the waveform file that the job writes in the recording's folder.
  var pyramidName: String { "waveform-\(id).pyramid" }

  /// Marks the job as succeeded. Returns false and changes nothing if it has finished already.
  @discardableResult
  mutating func succeed(with result: JobResult) -> Bool {
    guard !state.isFinished else { return false }
    state = .succeeded
    progress = 1
    finishedAt = .now
    self.result = RowJSON.text(result)
    return true
  }
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
