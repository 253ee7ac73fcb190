import Storage
import Terms
import Workers

/// The files of a new recording that a worker has made.
struct ResultFiles {
  /// The path of the audio file; of the working copy, if there is a replacement.
  let output: String
  /// The file for users, if that is another.
  let replacement: DenoiseWork.Replacement?
  let pyramid: String
  let frames: Int64
  let noiseRegions: [NoiseRegion]?
  /// Whether the file lacks the pictures that it was expected to have.
  var lacksPictures = false
}

extension JobOutcome {
  /// What the result's file can hold of the tags of `source`.
  func tagTarget(from source: Recording) throws(StorageError) -> TagTarget {
    let replacement =
      switch request.work {
      case .denoise(let work): work.replacement
      case .trim(let work): work.replacement
      default: nil as DenoiseWork.Replacement?
      }
    let made = if let output = job.output { try catalog.recording(output) } else { nil as Recording? }
    return TagTarget(
      made?.format.container ?? source.format.container, from: source.format.container,
      isCopied: replacement?.facts.demuxer != nil)
  }

  /// Makes the files durable and finishes the job together with the recording that it makes. `result` gets the
  /// recording's ID.
  func keep(
    _ sound: ResultFiles, _ warnings: [Warning], adding tracks: [(track: LabelTrack, chunks: [LabelChunk])] = [],
    _ result: (RecordingID) -> JobResult
  ) throws(StorageError) -> Fenced<Job> {
    guard let output = job.output, let made = try catalog.recording(output) else { return try refused() }
    settings.willAddFiles(job.id)
    let audio = try blobs.put(
      sound.replacement?.output ?? sound.output,
      as: ObjectKey(output, token.fileName("audio", made.fileExtension ?? "audio")))
    let pyramid = try blobs.put(sound.pyramid, as: token.waveformKey(of: output))
    var working: StoredFile?
    if sound.replacement != nil {
      let ending = made.audioFormat?.fileExtension ?? "wav"
      working = try blobs.put(sound.output, as: ObjectKey(output, token.fileName("working", ending)))
    }
    return try finish(result(output), adding: tracks) { [working] in
      $0.waveformState = .ready
      ($0.waveformKey, $0.waveformBytes) = (pyramid.key, pyramid.bytes)
      $0.warnings = warnings
      $0.noiseRegions = sound.noiseRegions
      if sound.lacksPictures, let facts = $0.mediaFacts { $0.media = facts.withoutPictures.json }
      $0.audioKey = audio.key
      if let working { $0.noteWorkingCopy(working) }
      $0.bytes = audio.bytes
      $0.sha256 = audio.sha256
      $0.format.setLength(frames: sound.frames)
    }
  }
}
