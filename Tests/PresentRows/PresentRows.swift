// The service dates its rows, and the IDs that sort by age, by the catalog's clock, and must say so each time. Most
// tests don't care; theirs are dated by this machine's.

import Storage
import Terms

extension Identifier {
  /// Creates an ID greater than every ID that this process has created before.
  package init() { self.init(at: .now) }
}

extension Recording {
  /// Creates a recording of the present time.
  package init(
    id: RecordingID = RecordingID(), name: String, bytes: Int64? = nil, sha256: String? = nil, format: SoundShape,
    waveformState: WaveformState = .queued, waveformJob: JobID? = nil, waveformKey: ObjectKey? = nil,
    audioKey: ObjectKey? = nil, media: String? = nil, workingKey: ObjectKey? = nil, workingBytes: Int64? = nil,
    warnings: [Warning] = [], derivedFrom: Derivation? = nil, noiseRegions: [NoiseRegion]? = nil
  ) {
    self.init(
      id: id, name: name, createdAt: .now, bytes: bytes, sha256: sha256, format: format, waveformState: waveformState,
      waveformJob: waveformJob, waveformKey: waveformKey, audioKey: audioKey, media: media, workingKey: workingKey,
      workingBytes: workingBytes, warnings: warnings, derivedFrom: derivedFrom, noiseRegions: noiseRegions)
  }
}

extension Job {
  /// Creates a job of the present time.
  package init(
    id: JobID = JobID(), kind: JobKind, recording: RecordingID, output: RecordingID? = nil, state: JobState = .queued,
    progress: Double = 0, startedAt: Timestamp? = nil, finishedAt: Timestamp? = nil, attempts: Int = 0,
    interruptions: Int = 0, nonce: String? = nil, node: String? = nil, leaseUntil: Timestamp? = nil,
    expectedBytes: Int64 = 0, parameters: String = "{}", result: String? = nil, error: String? = nil,
    client: String = ""
  ) {
    self.init(
      id: id, kind: kind, recording: recording, output: output, state: state, progress: progress, createdAt: .now,
      startedAt: startedAt, finishedAt: finishedAt, attempts: attempts, interruptions: interruptions, nonce: nonce,
      node: node, leaseUntil: leaseUntil, expectedBytes: expectedBytes, parameters: parameters, result: result,
      error: error, client: client)
  }
}

extension LabelTrack {
  /// Creates an empty track of the present time.
  package init(of recording: RecordingID, name: String, kind: Kind, language: String?, source: Source) {
    self.init(of: recording, name: name, kind: kind, language: language, source: source, at: .now)
  }
}

extension KeptProfile {
  /// Creates a profile of the present time.
  package init(
    name: String, recording: RecordingID?, noise: String?, sampleRate: Int?, channels: Int, spectrum: [UInt8]
  ) {
    self.init(
      name: name, recording: recording, noise: noise, sampleRate: sampleRate, channels: channels, spectrum: spectrum,
      at: .now)
  }
}

extension StoredResponse {
  /// Creates an answer of the present time.
  package init(scope: String, key: String, fingerprint: String, status: Int, location: String, body: String) {
    self.init(
      scope: scope, key: key, fingerprint: fingerprint, status: status, location: location, body: body,
      createdAt: .now)
  }
}

extension Upload {
  /// Creates an upload with a new ID.
  package init(
    length: Int64, offset: Int64 = 0, metadata: String? = nil, expiresAt: Timestamp, recording: RecordingID? = nil,
    writer: Int = 0, client: String = "", token: String? = nil
  ) {
    self.init(
      id: UploadID(), length: length, offset: offset, metadata: metadata, expiresAt: expiresAt, recording: recording,
      writer: writer, client: client, token: token)
  }
}

extension Conversion {
  /// Creates a conversion that was requested just now.
  package init(recording: RecordingID, format: String, key: ObjectKey, bytes: Int64, sha256: String) {
    self.init(recording: recording, format: format, key: key, bytes: bytes, sha256: sha256, usedAt: .now)
  }
}
