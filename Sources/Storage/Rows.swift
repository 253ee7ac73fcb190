import FoundationEssentials
import GRDB

/// A recording as a row of `recordings`.
struct RecordingRow: FetchableRecord, PersistableRecord {
  static let databaseTableName = "recordings"

  var recording: Recording

  init(_ recording: Recording) {
    self.recording = recording
  }

  init(row: Row) throws {
    var derivedFrom: Derivation?
    if let operation: String = row["derived_operation"] {
      derivedFrom = Derivation(
        recording: try identifier(row, "derived_recording"), job: try identifier(row, "derived_job"),
        operation: operation)
    }
    recording = Recording(
      id: try identifier(row, "id"), name: row["name"], createdAt: Timestamp(milliseconds: row["created_at"]),
      bytes: row["bytes"], sha256: row["sha256"],
      format: RecordingFormat(
        container: row["container"], codec: row["codec"], sampleRate: row["sample_rate"], channels: row["channels"],
        frames: row["frames"], estimatedFrames: row["estimated_frames"], duration: row["duration"]),
      waveformState: try choice(row, "waveform_state"), waveformJob: try optionalIdentifier(row, "waveform_job"),
      waveformFile: row["waveform_file"], audioFile: row["audio_file"], media: row["media"],
      workingFile: row["working_file"],
      warnings: try JSONDecoder().decode([RecordingWarning].self, from: Data((row["warnings"] as String).utf8)),
      derivedFrom: derivedFrom,
      noiseRegions: try (row["noise_regions"] as String?).map {
        try JSONDecoder().decode([RecordingNoiseRegion].self, from: Data($0.utf8))
      })
  }

  func encode(to container: inout PersistenceContainer) throws {
    container["id"] = recording.id.text
    container["name"] = recording.name
    container["name_folded"] = NameSearch.fold(recording.name)
    container["created_at"] = recording.createdAt.milliseconds
    container["bytes"] = recording.bytes
    container["sha256"] = recording.sha256
    container["container"] = recording.format.container
    container["codec"] = recording.format.codec
    container["sample_rate"] = recording.format.sampleRate
    container["channels"] = recording.format.channels
    container["frames"] = recording.format.frames
    container["estimated_frames"] = recording.format.estimatedFrames
    container["duration"] = recording.format.duration
    container["waveform_state"] = recording.waveformState.rawValue
    container["waveform_job"] = recording.waveformJob?.text
    container["waveform_file"] = recording.waveformFile
    container["audio_file"] = recording.audioFile
    container["media"] = recording.media
    container["working_file"] = recording.workingFile
    container["warnings"] = String(decoding: try JSONEncoder().encode(recording.warnings), as: UTF8.self)
    container["derived_recording"] = recording.derivedFrom?.recording.text
    container["derived_job"] = recording.derivedFrom?.job.text
    container["derived_operation"] = recording.derivedFrom?.operation
    container["noise_regions"] = try recording.noiseRegions.map {
      String(decoding: try JSONEncoder().encode($0), as: UTF8.self)
    }
  }
}

/// A job as a row of `jobs`.
struct JobRow: FetchableRecord, PersistableRecord {
  static let databaseTableName = "jobs"

  var job: Job

  init(_ job: Job) {
    self.job = job
  }

  init(row: Row) throws {
    job = Job(
      id: try identifier(row, "id"), kind: try choice(row, "kind"), recording: try identifier(row, "recording"),
      output: try optionalIdentifier(row, "output"), state: try choice(row, "state"), progress: row["progress"],
      createdAt: Timestamp(milliseconds: row["created_at"]), startedAt: instant(row, "started_at"),
      finishedAt: instant(row, "finished_at"), attempts: row["attempts"],
      interruptions: row["interruptions"], parameters: row["parameters"], result: row["result"], error: row["error"])
  }

  func encode(to container: inout PersistenceContainer) throws {
    container["id"] = job.id.text
    container["kind"] = job.kind.rawValue
    container["recording"] = job.recording.text
    container["output"] = job.output?.text
    container["state"] = job.state.rawValue
    container["progress"] = job.progress
    container["created_at"] = job.createdAt.milliseconds
    container["started_at"] = job.startedAt?.milliseconds
    container["finished_at"] = job.finishedAt?.milliseconds
    container["attempts"] = job.attempts
    container["interruptions"] = job.interruptions
    container["parameters"] = job.parameters
    container["result"] = job.result
    container["error"] = job.error
  }
}

/// A webhook as a row of `webhooks`.
struct WebhookRow: FetchableRecord, PersistableRecord {
  static let databaseTableName = "webhooks"

  var webhook: Webhook

  init(_ webhook: Webhook) {
    self.webhook = webhook
  }

  init(row: Row) throws {
    webhook = Webhook(
      job: try identifier(row, "job"), url: row["url"], attempts: row["attempts"],
      notBefore: Timestamp(milliseconds: row["not_before"]))
  }

  func encode(to container: inout PersistenceContainer) throws {
    container["job"] = webhook.job.text
    container["url"] = webhook.url
    container["attempts"] = webhook.attempts
    container["not_before"] = webhook.notBefore.milliseconds
  }
}

private func instant(_ row: Row, _ column: String) -> Timestamp? {
  (row[column] as Int64?).map(Timestamp.init(milliseconds:))
}

func optionalIdentifier<Entity>(_ row: Row, _ column: String) throws -> Identifier<Entity>? {
  (row[column] as String?) == nil ? nil : try identifier(row, column)
}

func identifier<Entity>(_ row: Row, _ column: String) throws -> Identifier<Entity> {
  try parse(row, column, Identifier.init)
}

private func choice<Choice: RawRepresentable<String>>(_ row: Row, _ column: String) throws -> Choice {
  try parse(row, column, Choice.init(rawValue:))
}

/// STRICT tables hold the right types; that a text is one of ours is checked here.
private func parse<Value>(_ row: Row, _ column: String, _ make: (String) -> Value?) throws -> Value {
  let text: String = row[column] ?? ""
  guard let value = make(text) else { throw StorageError.corrupt(column: column, value: text) }
  return value
}
