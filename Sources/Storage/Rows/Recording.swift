import Terms

/// A recording: what is known about it, and which of its files are complete.
///
/// Its sound never changes once `audioKey` is set. `name`, `format`, `tags` and `warnings` come from untrusted files.
package struct Recording: Sendable, Equatable {
  /// The ID, which also names its folder.
  package let id: RecordingID
  /// Whose it is. Set when its row is inserted.
  package internal(set) var tenant: Tenant {
    get { owner ?? .none }
    set { owner = newValue == .none ? nil : newValue }
  }
  /// The tenant, nil for `none`, so that descriptions of recordings without a tenant have no member for it.
  var owner: Tenant?
  /// Any text without NUL, at which SQLite would truncate it. Never part of a path.
  package var name: String
  /// When it was uploaded, or when the job that produces it was requested.
  package var createdAt: Timestamp
  /// Length of the audio file in bytes; nil until it is complete.
  package var bytes: Int64?
  /// SHA-256 of the audio file as 64 lower-case hexadecimal digits; nil until it is complete.
  package var sha256: String?
  /// The format of the sound.
  package var format: SoundShape
  /// The state of its waveform.
  package var waveformState: WaveformState
  /// The job that builds, or built, the waveform.
  package var waveformJob: JobID?
  /// The key of the waveform's file; nil if there is none.
  package var waveformKey: ObjectKey? { didSet { if waveformKey == nil { waveformBytes = nil } } }
  /// Length of the waveform's file in bytes; nil if there is none.
  package var waveformBytes: Int64?
  /// Length of the map of the sound, which is beside the audio file, in bytes; nil if there is none.
  package var mapBytes: Int64?
  /// The key of the audio file; nil until it is complete.
  package var audioKey: ObjectKey?
  /// What decoding needs to know about a file that isn't read directly, in JSON; nil for files that are.
  package var media: String?
  /// The key of the lossless copy of such a file's sound; nil until it is complete.
  package var workingKey: ObjectKey? { didSet { if workingKey == nil { (workingBytes, workingSHA256) = (nil, nil) } } }
  /// Length of the working copy in bytes; nil if there is none.
  package var workingBytes: Int64?
  /// SHA-256 of the working copy as 64 lower-case hexadecimal digits; nil if there is none.
  package var workingSHA256: String?
  /// Errors in the file's headers.
  package var warnings: [Warning]
  /// The origin of the recording; nil for an upload.
  package var derivedFrom: Derivation?
  /// The regions that contain only noise, best first; nil until the recording has been read.
  package var noiseRegions: [NoiseRegion]?
  /// What the file says of itself; nil until it has been read, and if that is nothing.
  package var tags: FileTags?
  /// The number of the description that says all this. It grows with each change, and is a time in milliseconds since
  /// 1970, so that no catalog that was restored to an earlier moment uses it a second time.
  package internal(set) var version: Int64

  /// Creates a recording. By default nothing about it is complete. `id`: nil for a new one.
  package init(
    id: RecordingID? = nil, name: String, createdAt: Timestamp, bytes: Int64? = nil,
    sha256: String? = nil, format: SoundShape, waveformState: WaveformState = .queued,
    waveformJob: JobID? = nil, waveformKey: ObjectKey? = nil, waveformBytes: Int64? = nil, mapBytes: Int64? = nil,
    audioKey: ObjectKey? = nil, media: String? = nil, workingKey: ObjectKey? = nil, workingBytes: Int64? = nil,
    workingSHA256: String? = nil, warnings: [Warning] = [], derivedFrom: Derivation? = nil,
    noiseRegions: [NoiseRegion]? = nil
  ) {
    self.id = id ?? RecordingID(at: createdAt)
    self.name = name
    self.createdAt = createdAt
    self.bytes = bytes
    self.sha256 = sha256
    self.format = format
    self.waveformState = waveformState
    self.waveformJob = waveformJob
    self.waveformKey = waveformKey
    self.waveformBytes = waveformBytes
    self.mapBytes = mapBytes
    self.audioKey = audioKey
    self.media = media
    self.workingKey = workingKey
    self.workingBytes = workingBytes
    self.workingSHA256 = workingSHA256
    self.warnings = warnings
    self.derivedFrom = derivedFrom
    self.noiseRegions = noiseRegions
    version = max(0, createdAt.milliseconds)
  }
}

extension Recording {
  /// The key of the file to read the sound from: the audio file, or the working copy of one that isn't read directly.
  package var soundKey: ObjectKey? { media == nil ? audioKey : workingKey }

  /// Notes the working copy.
  package mutating func noteWorkingCopy(_ file: StoredFile) {
    (workingKey, workingBytes, workingSHA256) = (file.key, file.bytes, file.sha256)
  }

  /// Total length of its files in bytes, as `usage` counts them.
  var keptBytes: Int64 { [bytes, workingBytes, waveformBytes, mapBytes].reduce(0) { $0 + ($1 ?? 0) } }

  /// The names of the files in the recording's folder.
  var audioFile: String? { audioKey?.name }
  var waveformFile: String? { waveformKey?.name }
  var workingFile: String? { workingKey?.name }
}

/// The recording and job that produced a recording. Both may have been deleted since.
package struct Derivation: Sendable, Codable, Equatable {
  /// The source.
  package var recording: RecordingID
  /// The job that produced it.
  package var job: JobID
  /// The operation: "denoise" or "trim".
  package var operation: String

  /// Creates a derivation from its parts.
  package init(recording: RecordingID, job: JobID, operation: String) {
    self.recording = recording
    self.job = job
    self.operation = operation
  }
}

/// The state of a recording's waveform.
package enum WaveformState: String, Sendable, Codable, Hashable, CaseIterable {
  case queued, building, ready, failed
}
