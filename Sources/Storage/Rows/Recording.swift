/// One recording: what is known of it, and which of its files are whole.
///
/// Its sound never changes once `audioFile` is set. `name`, `format` and `warnings` come from strangers' files.
package struct Recording: Sendable, Codable, Equatable {
  /// Also the name of its folder.
  package let id: RecordingID
  /// Any text but NUL, at which SQLite would cut it; never part of a path.
  package var name: String
  /// When it was uploaded, or when the job that makes it was asked for.
  package var createdAt: Timestamp
  /// Length of the audio file, nil until it is finished.
  package var bytes: Int64?
  /// Of the audio file, 64 lower-case hexadecimal digits, nil until it is finished.
  package var sha256: String?
  /// How the sound is laid out.
  package var format: RecordingFormat
  /// How far its waveform is.
  package var waveformState: WaveformState
  /// The job that builds the waveform, or that did.
  package var waveformJob: JobID?
  /// The waveform's file name inside the recording's folder.
  package var waveformFile: String?
  /// The sound's file name inside the recording's folder, nil until it is finished.
  package var audioFile: String?
  /// What has to be known to decode a file that is not read as it is, JSON; nil for one that is.
  package var media: String?
  /// The name of the lossless copy of such a file's sound inside the recording's folder, nil until it is finished.
  package var workingFile: String?
  /// Length of the working copy; nil where there is none, and for one that an earlier version made.
  package var workingBytes: Int64?
  /// What its file got wrong.
  package var warnings: [RecordingWarning]
  /// Where it came from, nil for an upload.
  package var derivedFrom: Derivation?
  /// Where it holds only noise, best first; nil until it has been read.
  package var noiseRegions: [RecordingNoiseRegion]?

  /// A recording with nothing finished yet but what is given.
  package init(
    id: RecordingID = RecordingID(), name: String, createdAt: Timestamp = .now, bytes: Int64? = nil,
    sha256: String? = nil, format: RecordingFormat, waveformState: WaveformState = .queued,
    waveformJob: JobID? = nil, waveformFile: String? = nil, audioFile: String? = nil, media: String? = nil,
    workingFile: String? = nil, workingBytes: Int64? = nil,
    warnings: [RecordingWarning] = [], derivedFrom: Derivation? = nil, noiseRegions: [RecordingNoiseRegion]? = nil
  ) {
    self.id = id
    self.name = name
    self.createdAt = createdAt
    self.bytes = bytes
    self.sha256 = sha256
    self.format = format
    self.waveformState = waveformState
    self.waveformJob = waveformJob
    self.waveformFile = waveformFile
    self.audioFile = audioFile
    self.media = media
    self.workingFile = workingFile
    self.workingBytes = workingBytes
    self.warnings = warnings
    self.derivedFrom = derivedFrom
    self.noiseRegions = noiseRegions
  }
}

extension Recording {
  /// The name of the file that its sound is read from: its own, or the working copy of one that is not read as it is.
  package var soundFile: String? { media == nil ? audioFile : workingFile }
}

/// How a recording's sound is laid out.
package struct RecordingFormat: Sendable, Codable, Equatable {
  /// "wav", "flac", "ogg" …
  package var container: String
  /// "pcm_s16", "vorbis" …
  package var codec: String
  /// In Hz.
  package var sampleRate: Int
  /// How many.
  package var channels: Int
  /// Per channel; nil until it is known for certain.
  package var frames: Int64?
  /// What the bytes suggest, while `frames` is nil.
  package var estimatedFrames: Int64?
  /// In seconds.
  package var duration: Double?

  /// A format; lengths may follow later.
  package init(
    container: String, codec: String, sampleRate: Int, channels: Int, frames: Int64? = nil,
    estimatedFrames: Int64? = nil, duration: Double? = nil
  ) {
    self.container = container
    self.codec = codec
    self.sampleRate = sampleRate
    self.channels = channels
    self.frames = frames
    self.estimatedFrames = estimatedFrames
    self.duration = duration
  }
}

/// What a file's header got wrong and what was done about it.
package struct RecordingWarning: Sendable, Codable, Equatable {
  /// Stable, snake_case: "truncated".
  package var code: String
  /// What it means here, for people.
  package var detail: String

  /// A warning of kind `code`.
  package init(code: String, detail: String) {
    self.code = code
    self.detail = detail
  }
}

/// A stretch in which only noise is heard.
package struct RecordingNoiseRegion: Sendable, Codable, Equatable {
  /// In seconds.
  package var start: Double
  /// In seconds.
  package var end: Double
  /// In dB of full scale.
  package var level: Double
  /// 0 … 1.
  package var score: Double

  /// A region of known parts.
  package init(start: Double, end: Double, level: Double, score: Double) {
    self.start = start
    self.end = end
    self.level = level
    self.score = score
  }
}

/// Which recording and which job a recording was made by. Both may be gone since.
package struct Derivation: Sendable, Codable, Equatable {
  /// The source.
  package var recording: RecordingID
  /// What made it.
  package var job: JobID
  /// "denoise".
  package var operation: String

  /// Made from `recording` by `job`.
  package init(recording: RecordingID, job: JobID, operation: String) {
    self.recording = recording
    self.job = job
    self.operation = operation
  }
}

/// How far a recording's waveform is.
package enum WaveformState: String, Sendable, Codable, Hashable, CaseIterable {
  case queued, building, ready, failed
}
