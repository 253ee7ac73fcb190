import HTTP
import Jobs
import Storage
import Terms
import Webhooks

/// What every handler needs. It is a class, because copying a dozen references would cost every request as many atomic
/// reference counts.
final class Context: Sendable {
  let configuration: Configuration
  let access: Access
  let accounts: TenantAccounts
  /// Private, so that no handler reads or changes rows except through the catalog of its caller.
  private let wholeCatalog: Catalog
  let store: MediaStore
  let runner: JobRunner
  let probes: ProbeLane
  let previews: WorkerLane
  let drawings: DrawingLane
  let parts: AudioPartLimits
  let bodyIntake = BodyIntake()
  /// nil if uploads are accepted without asking.
  let questions: UploadQuestions?
  let webhooks: WebhookSender
  let admission: UploadAdmission
  let uploads: UploadSessionTable
  let announced = AnnouncedBytes()
  let idempotency: IdempotencyKeys
  let waveforms: WaveformTable
  let files: MissingFiles
  let readiness: Readiness
  let documents: DocumentTable
  let changes: ChangeFeed
  let work: WorkQueue
  let log: ServiceLog
  let metrics: Metrics
  let erasure: Erasure
  let jobMeter: MeteredJobLog

  init(
    _ configuration: Configuration, access: Access, catalog: Catalog, store: MediaStore, work: WorkQueue,
    log: ServiceLog
  ) {
    self.configuration = configuration
    self.access = access
    accounts = TenantAccounts(access, defaults: configuration.tenantLimits)
    wholeCatalog = catalog
    self.store = store
    erasure = Erasure(catalog, log)
    questions = UploadQuestions(configuration, log: log)
    self.work = work
    self.log = log
    catalog.keepDescriptions(in: store) { id, error in
      log.failure(
        "a recording's description could not be written", ["recording": id.text, "error": logText(error)])
    }
    jobMeter = MeteredJobLog(log)
    var jobSettings = configuration.jobSettings
    jobSettings.clientLimits = accounts.clientLimits
    runner = JobRunner(jobSettings, catalog: catalog, store: store, work: work, log: jobMeter) { JobError($0) }
    probes = ProbeLane(configuration, work: work)
    previews = WorkerLane(
      configuration, label: "previews",
      waiting: .init(
        name: "waiting_previews", total: configuration.maximumWaitingPreviews,
        perClient: configuration.maximumWaitingPreviewsPerClient))
    drawings = DrawingLane(configuration)
    parts = AudioPartLimits(configuration)
    webhooks = WebhookSender(configuration.webhooks, catalog: catalog, log: log) { [base = configuration.basePath] in
      try JSONDocument.encoded(JobDocument($0, live: nil, base: base))
    }
    files = MissingFiles(catalog: catalog, store: store)
    let counter = access.hasKeys ? JobSecondsCounter(accounts, catalog, work, log) : nil
    waveforms = WaveformTable(
      catalog: catalog, store: store, live: runner.live, work: work,
      repairs: WaveformRepairs(catalog: catalog, store: store, runner: runner, log: log))
    runner.live.whenRemoved { [webhooks, weak waveforms, counter] id, job in
      webhooks.jobEnded(id)
      counter?.count()
      if let recording = job.recording { waveforms?.jobEnded(writing: recording) }
    }
    changes = ChangeFeed(
      streams: ClientTally(
        limit: configuration.maximumEventStreams,
        clientLimit: { [most = configuration.maximumEventStreamsPerClient] _ in most }))
    catalog.whenChanged { [changes, erasure] in
      if $0.leavesTraces { erasure.note() }
      changes.post($0)
    }
    runner.live.whenChanged { [changes] in changes.post(CatalogChanges(jobs: [JobChange($0.id, of: $0.tenant)])) }
    counter?.count()
    documents = DocumentTable(catalog: catalog, live: runner.live, work: work, base: configuration.basePath)
    metrics = Metrics(webhooks)
    readiness = Readiness { Readiness.Finding(configuration, catalog: catalog, store: store) }
    admission = UploadAdmission(configuration: configuration, store: store, runner: runner, probes: probes, work: work)
    uploads = UploadSessionTable(
      .init(
        configuration: configuration, catalog: catalog, store: store, admission: admission, metrics: metrics,
        accounts: accounts),
      work: work, log: log)
    idempotency = IdempotencyKeys(work: work)
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

  /// This node's name, and how many seconds ago the feed of the others' changes last proved that it delivers; nil if no
  /// other process shares the catalog.
  var feed: (node: String, ageSeconds: Double?)? {
    wholeCatalog.isShared ? (wholeCatalog.holder.node, wholeCatalog.secondsSinceHeard) : nil
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

  /// Returns the path of a recording's own file. Throws if it isn't finished, missing, or changed.
  func audioPath(of recording: Recording) async throws -> String {
    guard let name = recording.audioFile else { throw ServiceError.notReady(recording.id) }
    try await checkAudio(of: recording)
    return store.folder(of: recording.id) + "/" + name
  }

  /// Throws if a recording's own file is missing or has another length, which also adds a warning to the recording.
  func checkAudio(of recording: Recording) async throws {
    let fault = try await work.run { [files] () throws(StorageError) in try files.settle(recording) }
    if let fault { throw fault.error(recording.id) }
  }

  /// Returns the path of the file to read a recording's sound from. Throws if it isn't finished, missing, or changed; a
  /// missing or changed working copy is made again.
  func soundPath(of recording: Recording) async throws -> String {
    guard recording.media != nil else { return try await audioPath(of: recording) }
    guard let name = recording.workingFile else {
      try await checkAudio(of: recording)
      throw ServiceError.notReady(recording.id)
    }
    if await work.run({ [files] in files.hasLostWorkingCopy(recording) }) {
      try await work.run { [waveforms] () throws(StorageError) in
        try waveforms.giveUp(recording.id, .workingCopy(file: name))
      }
      try await checkAudio(of: recording)
      throw ServiceError.notReady(recording.id)
    }
    return store.folder(of: recording.id) + "/" + name
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
