import Labels
import Storage
import Terms
import Workers

/// Cuts a part out of a recording. The result is a new recording with its waveform.
package enum TrimJob: JobDefinition {
  /// The parameters as stored in the job's row.
  package struct Parameters: Codable, Sendable, Equatable {
    /// In seconds, 0 ≤ start < end.
    package var start, end: Double

    /// Creates parameters.
    package init(start: Double, end: Double) { (self.start, self.end) = (start, end) }
  }

  private static let samplesPerSecond = 40e6
  static let threadLimit = 1

  static func cost(samples: Double) -> JobSchedule.Work { .init(seconds: samples / samplesPerSecond) }

  static func writtenRecording(of job: Job) -> RecordingID? { job.output }

  static func work(of attempt: JobAttempt) throws(StorageError) -> (work: WorkerRequest.Work, source: String)? {
    guard let asked = RowJSON.value(Parameters.self, from: attempt.job.parameters), asked.start >= 0,
      asked.start < asked.end
    else { return nil }
    let (source, copy) = try attempt.sound()
    var work = TrimWork(
      TimeWindow(start: asked.start, end: asked.end), output: attempt.path("audio"), pyramid: attempt.path("pyramid"))
    work.copy = copy
    if attempt.source.mediaFacts != nil { work.texts = attempt.source.tags?.copied }
    if let facts = attempt.source.mediaFacts, facts.hasPartOfItsKind {
      work.replacement = .init(of: try attempt.original(), facts, output: work.output)
      work.output = attempt.path("working")
    }
    return (work: .trim(work), source: source)
  }

  static func record(_ outcome: JobOutcome) throws(StorageError) -> Fenced<Job>? {
    guard case .trim(let work) = outcome.request.work, case .trimmed(let trimmed) = outcome.report else { return nil }
    let made = ResultFiles(
      output: work.output, replacement: work.replacement, pyramid: work.pyramid, frames: trimmed.frames,
      noiseRegions: trimmed.noiseRegions, lacksPictures: trimmed.lacksPictures)
    let labels = try labelTracks(outcome)
    let warnings = try self.warnings(trimmed, outcome) + Warning.ofLabels(leftOut: labels.leftOut)
    return try outcome.keep(made, warnings, adding: labels.tracks) { JobResult(recording: $0, warnings: warnings) }
  }

  /// The tracks of the source, cut to the part that is kept. A track without a label there is kept too, as the user
  /// made it. Those that don't fit into memory with the others are left out and counted.
  private static func labelTracks(
    _ outcome: JobOutcome
  ) throws(StorageError) -> (tracks: [(track: LabelTrack, chunks: [LabelChunk])], leftOut: Int) {
    guard let output = outcome.job.output, let source = try outcome.catalog.recording(outcome.job.recording),
      let asked = RowJSON.value(Parameters.self, from: outcome.job.parameters),
      let start = MediaTime(seconds: asked.start), let end = MediaTime(seconds: asked.end),
      let owner = try outcome.catalog.of(source.tenant).labelOwner(of: source)
    else { return ([], 0) }
    var (tracks, leftOut, room) = ([(track: LabelTrack, chunks: [LabelChunk])](), 0, LabelCut.Room())
    for track in try outcome.catalog.labelTracks(of: owner) {
      var cut = LabelCut(of: track, for: output, from: start, to: end, room, at: outcome.catalog.time)
      // Each chunk is read in a transaction of its own, which ends before its labels are parsed.
      var last = -1
      while let next = try outcome.catalog.labels(
        after: last, of: track.id, from: start.microseconds, to: end.microseconds),
        cut.add(next.found.labels, next.lines)
      { last = next.found.number }
      if cut.fits {
        tracks.append((cut.track, cut.chunks))
        room = cut.room
      } else {
        leftOut += 1
      }
    }
    return (tracks, leftOut)
  }

  /// The worker's warnings about the sound, and how the result's kind of file differs from the source's.
  private static func warnings(_ trimmed: TrimOutcome, _ outcome: JobOutcome) throws(StorageError) -> [Warning] {
    var told = trimmed.warnings.filter { Warning.isOfSound($0.code) || Warning.isOfResult($0.code) }
    guard let source = try outcome.catalog.recording(outcome.job.recording) else { return told }
    told += Warning.ofTags(source.tags, in: try outcome.tagTarget(from: source))
    if let facts = source.mediaFacts {
      guard !facts.hasPartOfItsKind else { return told + Warning.ofKind(facts) }
      let target = try? OutputFormat.trimmed(facts.workingFormat)
      return told + (target.map { [.ofPart(of: facts.container.words, facts.codec, writtenAs: $0)] } ?? [])
    }
    guard let format = source.audioFormat, let target = try? OutputFormat.trimmed(format),
      target.codec.name != format.codec.name || target.container != format.container
    else { return told }
    return told + [.ofPart(of: format.container.rawValue, format.codec.name, writtenAs: target)]
  }
}
