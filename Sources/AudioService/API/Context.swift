import HTTP
import Jobs
import S3Storage
import Storage
import Terms
import Webhooks

/// What every handler needs. It is a class, because copying a dozen references would cost every request as many atomic
/// reference counts.
final class Context: Sendable {
  let configuration: Configuration
  let access: Access
  /// nil without an audit log.
  let auditOutbox: AuditOutbox?
  let accounts: TenantAccounts
  /// Private, so that no handler reads or changes rows except through the catalog of its caller.
  private let wholeCatalog: Catalog
  /// For upkeep; handlers use its parts.
  let media: MediaPlaces
  /// How clients are sent to the bucket; nil if they aren't.
  let redirects: S3Redirects?
  let objects: any ObjectStore
  let blobs: Blobs
  let scratch: Scratch
  let spool: any UploadSpool
  let runner: JobRunner
  let probes: ProbeLane
  let drawings: FairLane
  /// For tracks of labels: an edit doesn't wait for pictures.
  let labels: FairLane
  /// The processes that read recordings' samples, for callers in a turn of `samples`.
  let readers: SampleReaders
  let samples: FairLane
  /// For previews, spectra and noise profiles, which then wait for a turn of `samples`, too.
  let previews: FairLane
  let parts: AudioPartLimits
  let longBodies: FairLane
  /// nil if uploads are accepted without asking.
  let questions: UploadQuestions?
  let webhooks: WebhookSender
  let admission: UploadAdmission
  let uploads: UploadSessionTable
  let announced = AnnouncedBytes()
  let heldKeys: HeldKeys
  let idempotency: IdempotencyKeys
  let waveforms: WaveformTable
  /// nil if nodes don't call each other.
  let forwarded: ForwardedWaveforms?
  let files: MissingFiles
  let readiness: Readiness
  let documents: DocumentTable
  /// nil if files aren't in a folder of this machine.
  let openAudio: OpenAudio?
  let changes: ChangeFeed
  let batches: BatchRunner
  let work: WorkQueue
  /// For work that reads or writes recordings' files, which may be on another machine.
  let storeWork: StoreQueue
  let log: ServiceLog
  let metrics: Metrics
  let erasure: Erasure
  let deletionClock: DeletionClock
  let scrub: Scrub
  let jobMeter: MeteredJobLog

  init(
    _ configuration: Configuration, access: Access, catalog: Catalog, media: MediaPlaces, work: WorkQueue,
    log: ServiceLog
  ) {
    self.configuration = configuration
    self.access = access
    auditOutbox = access.audit.map { AuditOutbox($0, catalog, log) }
    accounts = TenantAccounts(access, defaults: configuration.tenantLimits)
    wholeCatalog = catalog
    longBodies = FairLane(
      configuration.clock, label: "long bodies", places: 8, perClient: 4,
      waiting: .init(name: "waiting_labels", total: 64, perClient: 16))
    self.media = media
    redirects = configuration.cluster.bucket.redirects
    (objects, blobs, scratch, spool) = (media.blobs.store, media.blobs, media.scratch, media.spool)
    erasure = Erasure(catalog, log)
    deletionClock = DeletionClock(catalog, log)
    questions = UploadQuestions(configuration, log: log) { catalog.time }
    self.work = work
    storeWork = media.bucket == nil ? StoreQueue(on: work) : StoreQueue()
    self.log = log
    // Few threads, because the store says little faster to more, and what waits for them is done later by any node.
    var later: DescriptionKeeper.Start?
    if media.bucket != nil {
      let threads = StoreQueue(threads: 4)
      later = { step in threads.start(step) }
    }
    catalog.keepDescriptions(in: media.blobs.descriptions, later: later) { id, error in
      log.failure(
        "a recording's description could not be written", ["recording": id.text, "error": logText(error)])
    }
    catalog.writeWatch.whenHeld(log.writeHeld)
    jobMeter = MeteredJobLog(log)
    var jobSettings = configuration.jobSettings
    jobSettings.clientLimits = accounts.clientLimits
    runner = JobRunner(
      jobSettings, catalog: catalog, blobs: blobs, scratch: scratch, work: work, storeWork: storeWork, log: jobMeter
    ) {
      JobError($0)
    }
    if let secret = configuration.cluster.nodes.secret { runner.believeAddresses(with: secret) }
    probes = ProbeLane(configuration)
    let counter = access.hasKeys ? JobSecondsCounter(accounts, catalog, work, log) : nil
    let pictures = WaitingLimits(
      name: "waiting_pictures", total: configuration.maximumWaitingPictures,
      perClient: configuration.maximumWaitingPicturesPerClient)
    let places = max(1, configuration.workerCount)
    drawings = FairLane(
      configuration.clock, label: "drawing", places: places, perClient: max(places - 1, 1), waiting: pictures,
      seconds: counter)
    labels = FairLane(
      configuration.clock, label: "labels", places: places, perClient: max(places - 1, 1),
      waiting: .init(name: "waiting_labels", total: pictures.total, perClient: pictures.perClient))
    samples = FairLane(
      configuration.clock, label: "samples", places: SampleReaders.limit, perClient: SampleReaders.limitPerClient,
      perRecording: SampleReaders.limitPerClient - 1, waiting: pictures, seconds: counter)
    // They take longer than samples, so at most half of the readers work for them, of one client half as many.
    let computing = min(max(2, configuration.workerCount) + 1, SampleReaders.limit / 2)
    previews = FairLane(
      configuration.clock, label: "previews", places: computing, perClient: computing / 2,
      waiting: .init(
        name: "waiting_previews", total: configuration.maximumWaitingPreviews,
        perClient: configuration.maximumWaitingPreviewsPerClient),
      seconds: counter)
    readers = SampleReaders(
      configuration.workerSettings, times: configuration.childPatience, clock: configuration.clock)
    parts = AudioPartLimits(configuration, seconds: counter)
    webhooks = WebhookSender(configuration.webhooks, catalog: catalog, log: log) { [base = configuration.basePath] in
      switch $0 {
      case .job(let job): try JSONDocument.encoded(JobDocument(job, live: nil, base: base))
      case .batch(let batch): try JSONDocument.encoded(BatchDocument(batch, live: nil))
      }
    }
    files = MissingFiles(catalog: catalog, objects: objects)
    forwarded = configuration.cluster.nodes.secret.map { [live = runner.live] in
      ForwardedWaveforms(secret: $0, live: live, log: log) { catalog.time }
    }
    waveforms = WaveformTable(
      catalog: catalog, objects: objects, disk: scratch.disk, live: runner.live, work: storeWork,
      localWork: work, repairs: WaveformRepairs(catalog: catalog, blobs: blobs, runner: runner, log: log),
      readers: readers)
    batches = BatchRunner(catalog, work)
    runner.live.whenRemoved { [webhooks, weak waveforms, counter, batches] id, job in
      webhooks.jobEnded(id)
      batches.jobEnded()
      counter?.count()
      if let recording = job.recording { waveforms?.jobEnded(writing: recording) }
    }
    openAudio = media.isRemote ? nil : OpenAudio { catalog.changeCount(of: $0) }
    scrub = Scrub(
      catalog, objects, every: configuration.scrubSeconds, log: log,
      giveUp: { [waveforms] id, loss throws(StorageError) in try waveforms.giveUp(id, loss) })
    // The store compares what is in a bucket.
    if media.bucket == nil { jobMeter.whenBegun { [scrub] in scrub.jobBegan(on: $0.recording) } }
    changes = ChangeFeed(
      streams: ClientTally(
        limit: configuration.maximumEventStreams,
        clientLimit: { [most = configuration.maximumEventStreamsPerClient] _ in most }), clock: configuration.clock)
    catalog.whenChanged { [changes, erasure, weak waveforms, weak openAudio] in
      media.forget($0.deleted.map(\.id))
      if !$0.deleted.isEmpty {
        waveforms?.recordingsDeleted()
        openAudio?.removeOutdated()
      }
      if $0.leavesTraces { erasure.note() }
      changes.post($0)
    }
    runner.live.whenChanged { [changes] in
      changes.post(CatalogChanges(jobs: [JobChange($0.id, of: $0.tenant)]))
    }
    counter?.count()
    documents = DocumentTable(catalog: catalog, live: runner.live, work: work, base: configuration.basePath)
    metrics = Metrics(webhooks, configuration.clock)
    readiness = Readiness(
      clock: configuration.clock,
      note: { [log] in
        if $0 == .ready { log.notice("ready again") } else { log.notice("not ready", ["finding": "\($0)"]) }
      }, late: { .late(catalog) }
    ) { Readiness.Finding(configuration, catalog: catalog, media: media) }
    admission = UploadAdmission(
      configuration: configuration, scratch: scratch, runner: runner, probes: probes, work: work)
    heldKeys = HeldKeys(catalog, work: work)
    uploads = UploadSessionTable(
      .init(
        configuration: configuration, catalog: catalog, blobs: blobs, spool: spool, admission: admission,
        metrics: metrics, accounts: accounts, storeWork: storeWork, heldKeys: heldKeys),
      clock: deletionClock, work: work, log: log)
    idempotency = IdempotencyKeys(heldKeys, work: work)
  }

  /// Returns a tenant's part of the catalog.
  func catalog(of tenant: Tenant) -> TenantCatalog { wholeCatalog.of(tenant) }

  /// Reads the files of keys and secrets again that have changed. Blocks.
  func reloadAccess() {
    for line in access.reload() { line.isFailure ? log.failure(line.message) : log.notice(line.message) }
  }

  /// Opens the audit log again, after it was renamed. Blocks.
  func reopenAudit() {
    guard let line = access.reopenAudit() else { return }
    line.isFailure ? log.failure(line.message) : log.notice(line.message)
  }

  /// How long calls of the catalog take.
  var catalogTimes: (reads: Histogram, writes: Histogram) {
    (wholeCatalog.readTimes, wholeCatalog.writeTimes)
  }

  /// How long each write holds the catalog.
  var writeWatch: WriteWatch { wholeCatalog.writeWatch }

  /// This node's name, and how many seconds ago the feed of the others' changes last proved that it delivers; nil if no
  /// other process shares the catalog.
  var feed: (node: String, ageSeconds: Double?)? {
    wholeCatalog.isShared ? (wholeCatalog.holder.node, wholeCatalog.secondsSinceHeard) : nil
  }

  /// The value of `Cache-Control` of a response that never changes.
  var immutable: String { configuration.cacheScope.immutable }

  /// The present time by the catalog's clock.
  var time: Timestamp { wholeCatalog.time }

  /// Why the catalog's clock may be wrong, and how far it is ahead of this machine's, in seconds.
  var catalogClock: (doubt: ClockDoubt?, differenceSeconds: Double) {
    (wholeCatalog.clockDoubt, wholeCatalog.clockDifferenceSeconds)
  }

  /// How long the catalog's last durable write for `readiness` took, in seconds.
  var catalogSeconds: Double { wholeCatalog.checkSeconds }

  /// Returns what every tenant has stored, for operators.
  func storedByTenant() throws(StorageError) -> [Tenant: TenantUsage] { try wholeCatalog.storedByTenant() }

  /// What startup found of earlier runs.
  var startReport: SweepReport { wholeCatalog.startReport.withLock { $0 } }

  /// Returns the caller's recording with the ID in a path. Throws if there is none.
  func recording(_ parameters: PathParameters, _ caller: Caller) async throws -> Recording {
    let text = parameters["id"]
    guard let id = RecordingID(text) else { throw ServiceError.noSuchRecording(text) }
    let catalog = caller.catalog
    guard let recording = try await work.run({ () throws(StorageError) in try catalog.recording(id) }) else {
      throw ServiceError.noSuchRecording(text)
    }
    return recording
  }

  /// Returns the file to read a recording's sound from. Throws like `checkSound`.
  func soundFile(of recording: Recording, for client: Client) async throws -> LocalFile {
    try await sound(of: recording, .transfer(client)) { [objects] (key) throws(StorageError) in
      try objects.localFile(key)
    }
  }

  /// Throws if the file to read a recording's sound from isn't finished, missing, or changed; a missing or changed
  /// working copy is made again.
  func checkSound(of recording: Recording) async throws { try await sound(of: recording) { _ in } }

  /// Throws if a recording's own file isn't finished, missing, or changed.
  func checkFinished(_ recording: Recording) async throws { try await audio(of: recording) { _ in } }

  /// Throws if a recording's own file is missing or has another length, which also adds a warning to the recording.
  func checkAudio(of recording: Recording) async throws {
    let fault = try await storeWork.run { [files] in try files.settle(recording) }
    if let fault { throw fault.error(recording.id) }
  }

  /// Returns what `use` makes of the key of a recording's own file.
  private func audio<R: Sendable>(
    of recording: Recording, _ load: StoreQueue.Load = .brief,
    _ use: @escaping @Sendable (ObjectKey) throws(StorageError) -> R
  ) async throws -> R {
    guard let key = recording.audioKey else { throw ServiceError.notReady(recording.id) }
    return try await storeWork.run(as: load) { [files] in
      if let fault = try files.settle(recording) { throw fault.error(recording.id) }
      return try use(key)
    }
  }

  /// Returns what `use` makes of the key of the file to read a recording's sound from.
  private func sound<R: Sendable>(
    of recording: Recording, _ load: StoreQueue.Load = .brief,
    _ use: @escaping @Sendable (ObjectKey) throws(StorageError) -> R
  ) async throws -> R {
    guard recording.media != nil else { return try await audio(of: recording, load, use) }
    if let key = recording.workingKey {
      let used = try await storeWork.run(as: load) { [files, waveforms] () -> R? in
        if !files.hasLostWorkingCopy(recording) {
          do { return try use(key) } catch StorageError.damagedObject {}
        }
        try waveforms.giveUp(recording.id, .workingCopy(key))
        return nil
      }
      if let used { return used }
    }
    try await checkAudio(of: recording)
    throw ServiceError.notReady(recording.id)
  }

  /// Returns the caller's job with the ID in a path. Throws if there is none.
  func job(_ parameters: PathParameters, _ caller: Caller) async throws -> Job {
    let text = parameters["id"]
    guard let id = JobID(text) else { throw ServiceError.noSuchJob(text) }
    let catalog = caller.catalog
    guard let job = try await work.run({ () throws(StorageError) in try catalog.job(id) }) else {
      throw ServiceError.noSuchJob(text)
    }
    return job
  }

  func document(_ recording: Recording) -> RecordingDocument {
    RecordingDocument(recording, live: runner.live.job(writing: recording.id))
  }

  func document(_ job: Job) -> JobDocument { JobDocument(job, live: runner.live[job.id], base: configuration.basePath) }
}
