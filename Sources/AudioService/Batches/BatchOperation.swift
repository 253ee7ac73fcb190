import HTTP
import Jobs
import Storage
import Terms
import Workers

/// What a batch does to each of its recordings.
enum BatchOperation: Sendable {
  case denoise(DenoiseParameters)
  case trim(TrimJob.Parameters)
  case convert(Conversions.Format)
  case loudness

  /// The members of a request that name an operation.
  static let names = ["convert", "denoise", "loudness", "trim"]

  /// Reads the one operation that a request names.
  init(_ members: JSONMembers) throws {
    let named = Self.names.filter { members.value($0) != nil || members.isNull($0) }
    guard let name = named.first else {
      throw members.invalid("denoise", .givenWithoutAny(["trim", "convert", "loudness"]))
    }
    guard named.count == 1 else { throw members.invalid(name, .alone(among: named)) }
    guard let value = members.value(name) else { throw members.invalid(name, .object) }
    func inside(_ known: JSONMembers.Known) throws -> JSONMembers {
      try members.nested(value, as: name, having: known, expecting: .object)
    }
    switch name {
    case "denoise":
      let known = DenoiseRequests.known.filter { !["name", "callback_url"].contains($0.key) }
      self = .denoise(try DenoiseRequests.parameters(try inside(known)))
    case "trim": self = .trim(try TrimRequests.parameters(try inside(["start": [], "end": []])))
    case "convert":
      let inside = try inside(["format": []])
      guard let format: Conversions.Format = try inside.choice("format") else { throw inside.invalid("format", .given) }
      self = .convert(format)
    default:
      _ = try inside([:])
      self = .loudness
    }
  }

  /// Reads the operation of a batch; nil if its row makes no sense.
  init?(_ batch: Batch) {
    let text = batch.parameters
    switch batch.kind {
    case .denoise:
      guard let asked = RowJSON.value(DenoiseParameters.self, from: text) else { return nil }
      self = .denoise(asked)
    case .trim:
      guard let asked = RowJSON.value(TrimJob.Parameters.self, from: text) else { return nil }
      self = .trim(asked)
    case .convert:
      guard let asked = RowJSON.value(ConvertJob.Parameters.self, from: text),
        let format = Conversions.Format(rawValue: asked.format.rawValue)
      else { return nil }
      self = .convert(format)
    case .loudness: self = .loudness
    case .waveform: return nil
    }
  }

  /// The kind of its jobs and their parameters, as stored in rows.
  var stored: (kind: JobKind, parameters: String) {
    switch self {
    case .denoise(let asked): (.denoise, RowJSON.text(asked))
    case .trim(let asked): (.trim, RowJSON.text(asked))
    case .convert(let format): (.convert, RowJSON.text(ConvertJob.Parameters(format: format.outputFormat)))
    case .loudness: (.loudness, "{}")
    }
  }
}

// MARK: Beginning

extension BatchOperation {
  /// Queues the job of a batch's next recording. Returns false if there is nothing to do: its result is there already.
  func begin(_ source: Recording, next batch: Batch, _ caller: Caller, _ context: Context) async throws -> Bool {
    let derived = DerivedRecordings(context: context)
    switch self {
    case .denoise(let asked):
      let plan = try await DenoiseRequests(context: context).plan(asked, source, caller)
      _ = try await derived.begin(plan, of: source, named: nil, caller, next: batch)
    case .trim(let asked):
      _ = try await derived.begin(TrimRequests.plan(asked, source), of: source, named: nil, caller, next: batch)
    case .convert(let format):
      guard let job = try await Conversions(context: context).missing(source, as: format, caller) else { return false }
      try await context.checkSound(of: source)
      try await Self.queue(job, of: source, next: batch, caller, context)
    case .loudness:
      guard try await LoudnessRequests(context: context).known(source.id, caller) == nil else { return false }
      try await context.checkAudio(of: source)
      let job = Job(kind: .loudness, recording: source.id, createdAt: caller.catalog.time)
      try await Self.queue(job, of: source, next: batch, caller, context)
    }
    return true
  }

  private static func queue(
    _ job: Job, of source: Recording, next batch: Batch, _ caller: Caller, _ context: Context
  ) async throws {
    let room = try context.runner.reserve(for: caller.client)
    var job = job
    (job.client, job.batch) = (batch.client, batch.id)
    try await context.checkUsage(of: caller, adding: job.expectedBytes)
    try await context.admission.checkDisk(for: job.expectedBytes)
    let (catalog, begun) = (caller.catalog, job)
    try await context.work.run { () throws(StorageError) in try catalog.insert(begun, next: batch) }
    context.runner.submit(begun, source: source, room: room)
  }
}
