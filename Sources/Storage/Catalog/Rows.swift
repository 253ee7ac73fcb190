import FoundationEssentials
import Terms

/// A recording as a row of `recordings`.
struct RecordingRow: TableRow {
  static let table = "recordings"

  var recording: Recording
  /// Whether the change leaves what the description says.
  private var keepsDescription = false

  func note(in db: CatalogTransaction) {
    db.note(changed: recording.id, of: recording.tenant)
    if !keepsDescription { db.note(undescribed: recording) }
  }

  init(_ recording: Recording, keepsDescription: Bool = false) {
    (self.recording, self.keepsDescription) = (recording, keepsDescription)
  }

  init(row: SQLRow) throws {
    var derivedFrom: Derivation?
    if let operation: String = try nullable(row, "derived_operation") {
      derivedFrom = Derivation(
        recording: try identifier(row, "derived_recording"), job: try identifier(row, "derived_job"),
        operation: operation)
    }
    recording = Recording(
      id: try identifier(row, "id"), name: try value(row, "name"),
      createdAt: Timestamp(milliseconds: try value(row, "created_at")),
      bytes: try nullable(row, "bytes"), sha256: try nullable(row, "sha256"),
      format: SoundShape(
        container: try value(row, "container"), codec: try value(row, "codec"),
        sampleRate: try value(row, "sample_rate"), channels: try value(row, "channels"),
        frames: try nullable(row, "frames"), estimatedFrames: try nullable(row, "estimated_frames")),
      waveformState: try choice(row, "waveform_state"), waveformJob: try optionalIdentifier(row, "waveform_job"),
      waveformKey: try objectKey(row, "waveform_key"),
      audioKey: try objectKey(row, "audio_key"), media: try nullable(row, "media"),
      workingKey: try objectKey(row, "working_key"),
      workingBytes: try nullable(row, "working_bytes"), workingSHA256: try nullable(row, "working_sha256"),
      warnings: try list(row, "warnings") ?? [], derivedFrom: derivedFrom,
      noiseRegions: try list(row, "noise_regions"))
    recording.tenant = try tenant(row)
    (recording.waveformBytes, recording.mapBytes) = (
      try nullable(row, "waveform_bytes"), try nullable(row, "map_bytes")
    )
    recording.tags = try document(row, "tags")
    recording.version = try value(row, "version")
    guard recording.isPlausible else { throw StorageError.corrupt(column: "recordings", value: recording.id.text) }
  }

  func encode(to container: inout ColumnValues) throws {
    container["id"] = recording.id.text
    container["tenant"] = recording.tenant.name
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
    container["waveform_key"] = recording.waveformKey?.description
    container["waveform_bytes"] = recording.waveformBytes
    container["map_bytes"] = recording.mapBytes
    container["audio_key"] = recording.audioKey?.description
    container["media"] = recording.media
    container["working_key"] = recording.workingKey?.description
    container["working_bytes"] = recording.workingBytes
    container["working_sha256"] = recording.workingSHA256
    container["warnings"] = String(decoding: try JSONEncoder().encode(recording.warnings), as: UTF8.self)
    container["derived_recording"] = recording.derivedFrom?.recording.text
    container["derived_job"] = recording.derivedFrom?.job.text
    container["derived_operation"] = recording.derivedFrom?.operation
    container["version"] = recording.version
    container["tags"] = try recording.tags.map { String(decoding: try JSONEncoder().encode($0), as: UTF8.self) }
    container["noise_regions"] = try recording.noiseRegions.map {
      String(decoding: try JSONEncoder().encode($0), as: UTF8.self)
    }
  }
}

/// A job as a row of `jobs`.
struct JobRow: TableRow {
  static let table = "jobs"

  var job: Job

  func note(in db: CatalogTransaction) { db.note(changed: job) }

  init(_ job: Job) {
    self.job = job
  }

  init(row: SQLRow) throws {
    job = Job(
      id: try identifier(row, "id"), kind: try choice(row, "kind"), recording: try identifier(row, "recording"),
      output: try optionalIdentifier(row, "output"), state: try choice(row, "state"),
      progress: try value(row, "progress"), createdAt: Timestamp(milliseconds: try value(row, "created_at")),
      startedAt: try instant(row, "started_at"), finishedAt: try instant(row, "finished_at"),
      attempts: try value(row, "attempts"), interruptions: try value(row, "interruptions"),
      nonce: try nullable(row, "nonce"), node: try nullable(row, "node"), leaseUntil: try instant(row, "lease_until"),
      expectedBytes: try value(row, "expected_bytes"), parameters: try value(row, "parameters"),
      result: try nullable(row, "result"), error: try nullable(row, "error"),
      client: try value(row, "client"), batch: try optionalIdentifier(row, "batch"))
    job.tenant = try tenant(row)
    (job.postponements, job.notBefore) = (try value(row, "postponements"), try instant(row, "not_before"))
    guard job.isPlausible else { throw StorageError.corrupt(column: "jobs", value: job.id.text) }
  }

  func encode(to container: inout ColumnValues) throws {
    container["id"] = job.id.text
    container["tenant"] = job.tenant.name
    container["kind"] = job.kind.rawValue
    container["recording"] = job.recording.text
    container["batch"] = job.batch?.text
    container["output"] = job.output?.text
    container["state"] = job.state.rawValue
    container["progress"] = job.progress
    container["created_at"] = job.createdAt.milliseconds
    container["started_at"] = job.startedAt?.milliseconds
    container["finished_at"] = job.finishedAt?.milliseconds
    container["attempts"] = job.attempts
    container["interruptions"] = job.interruptions
    container["postponements"] = job.postponements
    container["not_before"] = job.notBefore?.milliseconds
    container["nonce"] = job.nonce
    container["node"] = job.node
    container["lease_until"] = job.leaseUntil?.milliseconds
    container["expected_bytes"] = job.expectedBytes
    container["parameters"] = job.parameters
    container["result"] = job.result
    container["error"] = job.error
    container["client"] = job.client
  }
}

/// A webhook as a row of `webhooks`.
struct WebhookRow: TableRow {
  static let table = "webhooks"
  static let key = ["job"]

  var webhook: Webhook

  init(_ webhook: Webhook) {
    self.webhook = webhook
  }

  init(row: SQLRow) throws {
    webhook = Webhook(
      job: try identifier(row, "job"), url: try value(row, "url"), attempts: try value(row, "attempts"),
      notBefore: Timestamp(milliseconds: try value(row, "not_before")), traceparent: try nullable(row, "traceparent"))
    guard webhook.notBefore.isPlausible, webhook.attempts >= 0 else {
      throw StorageError.corrupt(column: "webhooks", value: webhook.job.text)
    }
  }

  func encode(to container: inout ColumnValues) throws {
    container["job"] = webhook.job.text
    container["url"] = webhook.url
    container["attempts"] = webhook.attempts
    container["not_before"] = webhook.notBefore.milliseconds
    container["traceparent"] = webhook.traceparent
  }
}

extension Job {
  /// Whether every value is one that the program could have written.
  fileprivate var isPlausible: Bool {
    let instants = [createdAt, startedAt, finishedAt, leaseUntil, notBefore].compactMap { $0 }
    return (0...1).contains(progress) && (0...1_000_000).contains(attempts) && (0...1_000_000).contains(interruptions)
      && (0...interruptions).contains(postponements) && (0...Self.expectedBytesLimit).contains(expectedBytes)
      && nonce.map(AttemptToken.isNonce) ?? true
      && instants.allSatisfy(\.isPlausible)
  }
}

// A row may be damaged: a column may be missing, have another type, or contain an unknown text. So
// every value is read through these functions, which throw `.corrupt`.

/// Returns the value of a column that is never NULL.
func value<Value: SQLConvertible>(_ row: SQLRow, _ column: String) throws -> Value {
  guard let value: Value = try nullable(row, column) else {
    throw StorageError.corrupt(column: column, value: "NULL")
  }
  return value
}

/// Returns the value of a column, or nil for NULL.
func nullable<Value: SQLConvertible>(_ row: SQLRow, _ column: String) throws -> Value? {
  guard let stored = row[column] else { throw StorageError.corrupt(column: column, value: "missing") }
  if stored == .null { return nil }
  guard let value = Value(stored) else { throw StorageError.corrupt(column: column, value: "\(stored)") }
  return value
}

func instant(_ row: SQLRow, _ column: String) throws -> Timestamp? {
  (try nullable(row, column) as Int64?).map(Timestamp.init(milliseconds:))
}

/// Returns a list stored as JSON, or nil for NULL.
private func list<Element: Decodable>(_ row: SQLRow, _ column: String) throws -> [Element]? {
  // Most lists of warnings are empty.
  if try nullable(row, column) == "[]" { return [] }
  return try document(row, column)
}

/// Returns a value stored as JSON, or nil for NULL.
private func document<Value: Decodable>(_ row: SQLRow, _ column: String) throws -> Value? {
  guard let text: String = try nullable(row, column) else { return nil }
  do { return try JSONDecoder().decode(Value.self, from: Data(text.utf8)) } catch {
    throw StorageError.corrupt(column: column, value: text)
  }
}

func optionalIdentifier<Entity>(_ row: SQLRow, _ column: String) throws -> Identifier<Entity>? {
  try nullable(row, column) as String? == nil ? nil : try identifier(row, column)
}

/// Returns the key of an object, or nil for NULL.
func objectKey(_ row: SQLRow, _ column: String) throws -> ObjectKey? {
  try nullable(row, column) as String? == nil ? nil : try parse(row, column, ObjectKey.init)
}

func identifier<Entity>(_ row: SQLRow, _ column: String) throws -> Identifier<Entity> {
  try parse(row, column, Identifier.init)
}

func choice<Choice: RawRepresentable<String>>(_ row: SQLRow, _ column: String) throws -> Choice {
  try parse(row, column, Choice.init(rawValue:))
}

private func parse<Value>(_ row: SQLRow, _ column: String, _ make: (String) -> Value?) throws -> Value {
  let text: String = try value(row, column)
  guard let value = make(text) else { throw StorageError.corrupt(column: column, value: text) }
  return value
}
