import FoundationEssentials

/// What one process tells the others that share its catalog, as a line of JSON.
///
/// A node of the next version may send members that this one doesn't know, which are ignored, and messages that this
/// one can't read, which count as "anything may have changed" (`CatalogFeed`).
enum CatalogMessage: Equatable {
  /// The changes of a transaction.
  case changes(CatalogChanges)
  /// How far an attempt has come.
  case progress(AttemptProgress)
  /// More has changed than fits into messages.
  case much

  /// The maximum number of messages for one transaction. If it needs more, a single message tells the others to read
  /// everything again.
  private static let limit = 16

  /// Returns the changes as messages of at most `byteLimit` bytes, none if nothing has changed.
  static func lines(_ changes: CatalogChanges, from node: String, byteLimit: Int) -> [String] {
    let items = changes.items
    guard !items.isEmpty else { return [] }
    var (lines, rest) = ([String](), [items[...]])
    while let next = rest.popLast() {
      let line = CatalogMessage.changes(CatalogChanges(items: next)).line(from: node)
      if line.utf8.count <= byteLimit {
        lines.append(line)
      } else if next.count > 1, lines.count + rest.count + 2 <= limit {
        let middle = next.startIndex + next.count / 2
        rest += [next[middle...], next[..<middle]]
      } else {
        return [CatalogMessage.much.line(from: node)]
      }
    }
    return lines
  }

  /// The message as JSON. `node` is the sender's.
  func line(from node: String) -> String {
    var wire = Wire(node: node)
    switch self {
    case .changes(let changes):
      wire.recordings = changes.recordings.isEmpty ? nil : changes.recordings.map(Wire.Owner.init)
      wire.deleted = changes.deleted.isEmpty ? nil : changes.deleted.map(Wire.Owner.init)
      wire.jobs = changes.jobs.isEmpty ? nil : changes.jobs.map(Wire.Outline.init)
    case .progress(let progress): wire.progress = Wire.Progress(progress)
    case .much: break
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    // A value of these types has a representation in JSON.
    return (try? encoder.encode(wire)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
  }

  /// Parses a message. nil if it can't be read.
  static func parse(_ line: String) -> (node: String, message: CatalogMessage)? {
    guard let wire = try? JSONDecoder().decode(Wire.self, from: Data(line.utf8)) else { return nil }
    if let progress = wire.progress {
      guard let progress = progress.value else { return nil }
      return (wire.node, .progress(progress))
    }
    if wire.recordings == nil, wire.deleted == nil, wire.jobs == nil { return (wire.node, .much) }
    var changes = CatalogChanges()
    for owner in wire.recordings ?? [] {
      guard let owned = owner.value else { return nil }
      changes.recordings.append(owned)
    }
    for owner in wire.deleted ?? [] {
      guard let owned = owner.value else { return nil }
      changes.deleted.append(owned)
    }
    for outline in wire.jobs ?? [] {
      guard let change = outline.value else { return nil }
      changes.jobs.append(change)
    }
    return (wire.node, .changes(changes))
  }

  /// The members of a message.
  private struct Wire: Codable {
    struct Owner: Codable {
      var id: String
      var tenant: String?

      init(_ owned: Owned<Recording>) {
        (id, tenant) = (owned.id.text, owned.tenant == .none ? nil : owned.tenant.name)
      }

      var value: Owned<Recording>? {
        RecordingID(id).map { Owned($0, of: tenant.map(Tenant.init(stored:)) ?? .none) }
      }
    }

    struct Outline: Codable {
      var id: String
      var tenant: String?
      var state: String?
      var attempt: Int?
      var nonce, node, recording, output, kind: String?

      init(_ change: JobChange) {
        (id, tenant) = (change.id.text, change.tenant == .none ? nil : change.tenant.name)
        guard let job = change.job else { return }
        (state, kind, attempt) = (job.state.rawValue, job.kind.rawValue, job.attempts)
        (nonce, node) = (job.nonce, job.node)
        (recording, output) = (job.recording.text, job.output?.text)
      }

      var value: JobChange? {
        guard let id = JobID(id) else { return nil }
        let tenant = tenant.map(Tenant.init(stored:)) ?? .none
        guard let state = state.flatMap(JobState.init), let kind = kind.flatMap(JobKind.init),
          let recording = recording.flatMap({ RecordingID($0) })
        else { return JobChange(id, of: tenant, job: nil) }
        var job = Job(
          id: id, kind: kind, recording: recording, output: output.flatMap { RecordingID($0) }, state: state,
          createdAt: id.created, attempts: attempt ?? 0, nonce: nonce, node: node)
        job.tenant = tenant
        return JobChange(id, of: tenant, job: job)
      }
    }

    struct Progress: Codable {
      var job: String
      var attempt: Int
      var nonce: String
      var report: String
      var address, proof: String?

      init(_ progress: AttemptProgress) {
        (job, attempt, nonce) = (progress.token.job.text, progress.token.attempt, progress.token.nonce)
        (report, address, proof) = (progress.report, progress.address, progress.proof)
      }

      var value: AttemptProgress? {
        JobID(job).map {
          AttemptProgress(
            AttemptToken(job: $0, attempt: attempt, nonce: nonce), report: report, address: address, proof: proof)
        }
      }
    }

    var node: String
    var recordings, deleted: [Owner]?
    var jobs: [Outline]?
    var progress: Progress?
  }
}

/// How far an attempt has come, as its node tells the others.
package struct AttemptProgress: Sendable, Equatable {
  /// The attempt.
  package let token: AttemptToken
  /// The worker's report, in JSON.
  package let report: String
  /// Where other nodes can fetch the waveform that the attempt writes, as `HOST:PORT`; nil if they can't.
  package let address: String?
  /// What proves that a node of the cluster says so. Without it, anyone who may connect to the database could have the
  /// nodes call any address.
  package let proof: String?

  /// Creates a value from its parts.
  package init(_ token: AttemptToken, report: String, address: String? = nil, proof: String? = nil) {
    (self.token, self.report, self.address, self.proof) = (token, report, address, proof)
  }
}

extension CatalogChanges {
  fileprivate enum Item {
    case recording(Owned<Recording>), deleted(Owned<Recording>), job(JobChange)
  }

  fileprivate var items: [Item] {
    recordings.map(Item.recording) + deleted.map(Item.deleted) + jobs.map(Item.job)
  }

  fileprivate init(items: ArraySlice<Item>) {
    self.init()
    for item in items {
      switch item {
      case .recording(let owned): recordings.append(owned)
      case .deleted(let owned): deleted.append(owned)
      case .job(let change): jobs.append(change)
      }
    }
  }
}
