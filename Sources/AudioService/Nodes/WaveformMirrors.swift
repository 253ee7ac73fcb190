import Dispatch
import Jobs
import Processing
import S3Storage
import Storage
import Synchronization
import Waveform

/// Copies of the waveforms that jobs on other nodes are writing.
///
/// What is copied is decided by PyramidMirror, and when by MirrorSchedule. If a copy can't be made or continued, only
/// the job's progress is known, or what was copied before. A copy goes when its job has ended or another attempt has
/// begun. If the node that wrote the original is lost, it stays until then for those who look at it, and else goes at
/// once. Thread-safe.
final class WaveformMirrors: Sendable {
  /// What the copies need from the rest of the service.
  struct Surroundings: Sendable {
    let live: LiveJobs
    let log: ServiceLog
    /// The present by the catalog's clock.
    let time: @Sendable () -> Timestamp
    /// The shortest time between two lines of the log about failures, in seconds.
    var complaintSeconds = 60.0
    /// Returns the name of a new file on this node's disk. Throws if there is no room for it. Blocks.
    let makeRoom: @Sendable () throws -> String
  }

  private struct Entry {
    let token: AttemptToken
    var mirror: PyramidMirror?
    var schedule = MirrorSchedule()
    /// Whether the original has changed what it must not, so that nothing of it can be trusted.
    var isBroken = false
    /// How often in a row the node didn't have the file.
    var absences = 0

    /// Whether another attempt has begun, or none runs and nobody looks.
    func isUnneeded(for job: LiveJob) -> Bool {
      guard let writer = job.writer, writer.attempt >= token.attempt else { return false }
      return writer != token || !job.isRunning && !schedule.isAwake
    }
  }

  private enum Fault: Error { case missing, invalidAddress }

  private let secret: NodeSecret
  private let around: Surroundings
  private let entries = Mutex<[JobID: Entry]>([:])
  private let client = RangeClient(connectSeconds: 1, seconds: fetchSeconds)
  private let threads = StoreQueue(threads: 8, waitingLimit: 1000)
  private let timer = DispatchQueue(label: "waveforms of other nodes")
  private let start = ContinuousClock.now
  private let lastComplaint = Mutex<Double?>(nil)

  /// The number of bytes fetched, and of fetches by their outcome.
  let (bytes, successes, failures) = (Counter(), Counter(), Counter())

  /// The time for one answer, and after which a fetch makes no further step, in seconds.
  private static let fetchSeconds = 5.0
  /// The maximum number of copies, each with two open files. Of further jobs, only the progress is known.
  static let limit = 256

  init(secret: NodeSecret, _ around: Surroundings) { (self.secret, self.around) = (secret, around) }

  /// Returns the copy of the waveform that a job on another node writes, as far as it has been made, and continues it
  /// for some seconds. nil if there is none yet. Doesn't block.
  func mirror(of job: LiveJob) -> PyramidMirror? {
    guard let token = job.writer, job.address != nil else { return nil }
    // What is dropped is released outside of the lock.
    let (mirror, action, _) = entries.withLock { entries -> (PyramidMirror?, MirrorSchedule.Action, Entry?) in
      var dropped: Entry?
      if let known = entries[token.job], known.token != token {
        // The job may have been looked up before its next attempt began.
        guard known.token.attempt < token.attempt else { return (nil, .nothing, nil) }
        dropped = entries.removeValue(forKey: token.job)
      }
      guard var entry = entries[token.job] ?? (entries.count < Self.limit ? Entry(token: token) : nil) else {
        return (nil, .nothing, dropped)
      }
      let action = entry.isBroken ? .nothing : entry.schedule.looked(at: now, Self.lag(of: entry.mirror, behind: job))
      entries[token.job] = entry
      return (entry.mirror, action, dropped)
    }
    perform(action, token)
    return mirror
  }

  /// Removes the copy of a job that has ended.
  func drop(_ job: JobID) { drop(job) { _ in true } }

  /// Removes the copy of a job if it isn't needed any more, because the table of jobs has changed.
  func jobChanged(_ id: JobID) {
    guard let job = around.live[id] else { return }
    drop(id) { $0.isUnneeded(for: job) }
  }

  private func drop(_ job: JobID, if isUnneeded: (Entry) -> Bool) {
    let dropped = entries.withLock { $0[job].map(isUnneeded) == true ? $0.removeValue(forKey: job) : nil }
    // Outside of the lock.
    withExtendedLifetime(dropped) {}
  }

  /// The number of copies.
  var count: Int { entries.withLock { $0.values.count { $0.mirror != nil } } }

  // MARK: Fetching

  private var now: Double { (.now - start) / .seconds(1) }

  private static func lag(of mirror: PyramidMirror?, behind job: LiveJob) -> MirrorSchedule.Lag {
    // Of a node that is lost, nothing more will come.
    guard job.isRunning, let progress = job.progress, mirror?.isFinished != true else {
      return .init(blocks: 0, isEnd: false)
    }
    return .init(
      blocks: max(progress.readyFrames, 0) / PyramidMirror.blockFrames
        - (mirror?.readyFrames ?? 0) / PyramidMirror.blockFrames,
      isEnd: progress.readyFrames > 0 && progress.readyFrames == progress.totalFrames)
  }

  private func perform(_ action: MirrorSchedule.Action, _ token: AttemptToken) {
    switch action {
    case .nothing: break
    case .wait(let seconds): timer.asyncAfter(deadline: .now() + seconds) { [weak self] in self?.tick(token) }
    case .fetch: if !threads.start({ [self] in fetch(token) }) { ended(token, successfully: false) }
    }
  }

  /// The job if the attempt still runs on another node. If not, drops its copy.
  private func job(of token: AttemptToken) -> LiveJob? {
    if let job = around.live[token.job], job.writer == token, job.address != nil { return job }
    drop(token.job) { $0.token == token }
    return nil
  }

  /// Changes the entry of an attempt, unless it was dropped.
  private func change<R>(_ token: AttemptToken, _ body: (inout Entry) -> R) -> R? {
    entries.withLock { entries in
      guard var entry = entries[token.job], entry.token == token else { return nil }
      defer { entries[token.job] = entry }
      return body(&entry)
    }
  }

  private func tick(_ token: AttemptToken) {
    guard let job = job(of: token) else { return }
    let action = change(token) { $0.schedule.tick(at: now, Self.lag(of: $0.mirror, behind: job)) }
    if action == .nothing { jobChanged(token.job) }
    perform(action ?? .nothing, token)
  }

  private func ended(_ token: AttemptToken, successfully: Bool) {
    let action = change(token) { $0.schedule.fetched(at: now, successfully: successfully) }
    perform(action ?? .nothing, token)
  }

  /// Fetches what is new. Blocks.
  private func fetch(_ token: AttemptToken) {
    guard let job = job(of: token), let address = job.address else { return }
    do {
      try update(token, job, from: address)
      successes.add(1)
      _ = change(token) { $0.absences = 0 }
      ended(token, successfully: true)
    } catch WaveformError.changedPyramid(let page) {
      failures.add(1)
      complain(token, address, "what never changes has changed (page \(page))")
      let dropped = change(token) { entry -> PyramidMirror? in
        entry.isBroken = true
        defer { entry.mirror = nil }
        return entry.mirror
      }
      withExtendedLifetime(dropped) {}
    } catch Fault.missing {
      // Once is no failure: a job that ends moves its file before others hear of its end.
      let absences = change(token) { entry -> Int in
        entry.absences += 1
        return entry.absences
      }
      if absences ?? 0 > 1 {
        failures.add(1)
        complain(token, address, "it has no such file")
      }
      ended(token, successfully: false)
    } catch {
      failures.add(1)
      complain(token, address, Self.words(for: error))
      ended(token, successfully: false)
    }
  }

  private func update(_ token: AttemptToken, _ job: LiveJob, from address: String) throws {
    guard ListeningAddress.canBeCalled(address) else { throw Fault.invalidAddress }
    let deadline = now + Self.fetchSeconds
    let path = GrowingFiles.path(of: token)
    let fetch = { [self] (range: Range<Int64>) throws -> [UInt8] in
      let proof = secret.authorization(.get, path, range: RangeClient.field(range), at: around.time())
      let bytes = try client.bytes(
        range, of: "http://\(address)\(path)", fields: [(name: "Authorization", value: proof)]
      ) { [secret] fields, content in
        let (answer, range) = (fields[NodeSecret.answerField.lowercased()], fields["content-range"] ?? "")
        return secret.isProof(answer, ofAnswer: content, range: range, to: path, proof)
      }
      guard let bytes else { throw Fault.missing }
      self.bytes.add(bytes.count)
      return bytes
    }
    let header = try fetch(PyramidMirror.headerBytes)
    let room = try around.makeRoom()
    let mirror: PyramidMirror
    if let known = change(token, { $0.mirror }) ?? nil {
      mirror = known
    } else {
      mirror = try PyramidMirror(creating: room, header: header)
      _ = change(token) { $0.mirror = mirror }
    }
    try mirror.update(header: header, ready: job.progress?.readyFrames ?? 0, fetch: fetch) {
      // Within the time, a fast network brings more than the disk's reserve.
      now < deadline && around.live[token.job]?.writer == token && (try? around.makeRoom()) != nil
    }
  }

  // MARK: The log

  /// Logs a failure, but not one soon after another: with a node that can't be reached, each fetch fails.
  private func complain(_ token: AttemptToken, _ address: String, _ reason: String) {
    let isDue = lastComplaint.withLock { last in
      if let known = last, now - known < around.complaintSeconds { return false }
      last = now
      return true
    }
    guard isDue else { return }
    around.log.failure(
      "a waveform that another node builds can't be fetched",
      ["job": token.job.text, "address": address, "reason": reason])
  }

  private static func words(for error: any Error) -> String {
    switch error {
    case S3Error.refused(403, _, _): "it answered 403: the nodes have different files for --cluster-secret-file"
    case S3Error.malformedAnswer("proof"):
      "its answer isn't proven: another version, or not a node with the same file for --cluster-secret-file"
    case Fault.invalidAddress: "that is no address"
    case WaveformError.damagedPyramid(let page): "page \(page) isn't what was written"
    case WaveformError.malformedPyramid(let field): "the file isn't a waveform (\(field))"
    default: logText(error)
    }
  }
}

extension WaveformMirrors {
  /// Returns nil if this node doesn't show the waveforms of other nodes.
  convenience init?(
    _ configuration: Configuration, catalog: Catalog, media: MediaPlaces, live: LiveJobs, log: ServiceLog
  ) {
    let cluster = configuration.cluster
    guard let secret = cluster.nodes.secret, cluster.role.answersClients, let disk = media.bucket?.disk else {
      return nil
    }
    self.init(
      secret: secret,
      Surroundings(live: live, log: log, time: { catalog.time }) { [scratch = media.scratch] in
        guard try scratch.freeBytes() > configuration.reservedDiskBytes else { throw StorageError.diskFull }
        return disk.temporaryPath()
      })
  }
}
