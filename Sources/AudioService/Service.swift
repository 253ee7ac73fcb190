import CLinux
import Dispatch
import Glibc
import HTTP
import Jobs
import Logging
import PostgresStorage
import S3Storage
import Storage
import Waveform
import Workers

/// The whole service: catalog, files, jobs, and server.
package final class Service: Sendable {
  private let context: Context
  private let catalog: Catalog
  private let responder: any HTTPResponder
  private let server: HTTPServer
  private let operators: HTTPServer?
  private let nodes: NodeServer?
  private let retention: Retention
  private let watcher: AccessWatcher
  private let storage: OpenStorage

  /// Returns once the server of the catalog that nodes share accepts connections, and at once without such a catalog:
  /// after a power cut, a node may be there before its database. See `PostgresMigrator.waitForServer`.
  package static func waitForCatalog(
    _ configuration: Configuration, logger: Logger, pause: (Double) async -> Bool
  ) async throws -> Bool {
    guard let url = configuration.cluster.catalogURL else { return true }
    let settings = PostgresSettings(address: try PostgresAddress(url))
    return try await PostgresSchema.migrator.waitForServer(settings, pause: pause) { reason in
      ServiceLog(logger).failure("the catalog's server can't be reached; the start waits for it", ["reason": reason])
    }
  }

  /// Opens the data folder or the catalog that nodes share, creating it if needed, and cleans up after a crash.
  ///
  /// `logRequest` writes the log line of a request; nil for `logger`. Throws if the folder or the file of keys can't be
  /// used, if another service uses the folder, or if its catalog is damaged, or lost although there are recordings; and
  /// what `PostgresMigrator` throws.
  package init(
    _ configuration: Configuration, logger: Logger, logRequest: (@Sendable (RequestRecord) -> Void)? = nil
  ) throws {
    let log = ServiceLog(logger)
    let work = WorkQueue(label: "storage")
    // A file that can't be used is found before anything is created or changed.
    _ = try Access(configuration) { configuration.clock.time }
    let storage = try OpenStorage(configuration)
    let catalog = storage.catalog
    let access = try Access(configuration) { catalog.time }
    let context = Context(configuration, access: access, catalog: catalog, media: storage.media, work: work, log: log)
    (self.context, self.catalog, self.storage) = (context, catalog, storage)
    retention = Retention(context, catalog)
    watcher = AccessWatcher(context)
    // Makes a write beyond the file size limit fail instead of ending the process.
    _ = signal(SIGXFSZ, SIG_IGN)
    var http = HTTPServerConfiguration()
    http.host = configuration.host
    http.port = configuration.port
    http.limits = configuration.httpLimits
    http.clock = configuration.clock
    http.client = { [proxies = configuration.trustedProxies] peer in
      Client.connecting(from: peer.host, trusting: proxies)?.key
    }
    http.responseFields = [
      "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": configuration.corsOrigins.resourcePolicy,
    ]
    // A token in a page's address must not reach the sites that the page links to.
    if access.hasKeys { http.responseFields["Referrer-Policy"] = "no-referrer" }
    http.refusal = refusal(configuration)
    IdleMemory.boundKept()
    let idleMemory = IdleMemory(configuration.clock) {
      catalog.releaseMemory()
      PyramidFile.releaseMemory()
      stillwave_trim_memory()
    }
    let logRequest = log.tellsRequests ? logRequest ?? log.request : nil
    let requestTimes = context.metrics.requests
    http.onCompleted = { request in
      idleMemory.requestEnded(bytesReceived: request.bytesReceived)
      requestTimes.add(request)
      logRequest?(request)
    }
    http.onBrokenOff = log.brokeOff
    responder = AudioService.responder(context) { error, request in
      let problem = problem(for: error)
      context.log.answered(request, with: problem, for: error)
      return problem.response()
    }
    var connections = configuration.httpLimits.connectionCount
    if context.forwarded != nil { connections += ForwardedWaveforms.threadCount }
    if configuration.cluster.nodes.listen != nil { connections += NodeServer.connectionLimit }
    HTTPServer.raiseDescriptorLimit(forConnections: connections)
    let server = HTTPServer(http, responder: responder)
    self.server = server
    operators = Self.operatorsServer(configuration, context)
    nodes = NodeServer(context)
    WorkerSignals.log(to: context.log)
    context.metrics.watch { [weak server] in server?.statistics ?? ServerStatistics() }
    // What lies in a shared folder may be another node's work.
    if !storage.isShared, let store = storage.media.folder {
      Self.settle(context, catalog, store, verified: storage.isVerified)
    }
  }

  /// Creates the server of the operators' own port; nil if there is none.
  private static func operatorsServer(_ configuration: Configuration, _ context: Context) -> HTTPServer? {
    guard let address = configuration.adminAddress ?? (context.access.hasKeys ? Configuration.defaultAdminAddress : nil)
    else { return nil }
    var http = HTTPServerConfiguration()
    (http.host, http.port, http.loopCount) = (address.host, address.port, 1)
    http.clock = configuration.clock
    http.limits.connectionCount = 64
    http.responseFields = ["X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin"]
    return HTTPServer(http, responder: operatorsResponder(context))
  }

  /// Starts the operators' own port. If nobody asked for it, it is left out when its address is in use.
  private func startOperatorsServer() throws {
    guard let operators else { return }
    do {
      context.log.notice("operators' port", ["address": "\(try operators.start())"])
    } catch {
      guard context.configuration.adminAddress == nil else { throw error }
      context.log.notice(
        "/metrics and /readyz have no port of their own: the default one is in use; see --admin-listen")
    }
  }

  /// Removes what earlier runs left unfinished, and restores what the catalog has lost.
  private static func settle(_ context: Context, _ catalog: Catalog, _ store: MediaStore, verified: Bool) {
    if !verified {
      context.log.notice("the catalog is too large to be checked at the start: nothing is removed based on it", [:])
    }
    let report = Reconciliation(catalog: catalog, store: store).run(verified: verified)
    catalog.startReport.withLock { $0 = report }
    do {
      let lost = try LostParts(catalog: catalog, store: store).settle()
      if lost.gone + lost.short > 0 {
        context.log.failure("unfinished uploads lost bytes", ["all": "\(lost.gone)", "some": "\(lost.short)"])
      }
    } catch {
      context.log.failure("the unfinished uploads could not be compared with their files", ["error": logText(error)])
    }
    if !report.failures.isEmpty {
      context.log.failure(
        "some leftovers of an earlier run could not be read",
        ["failures": "\(report.failures.count)", "first": logText(report.failures[0])])
    }
    if report.adopted > 0 {
      context.log.failure(
        "recordings without a row in the catalog were added again", ["recordings": "\(report.adopted)"])
    }
    if report.healed + report.unreadable + report.forgotten > 0 {
      context.log.failure(
        "the catalog has rows that can't be read",
        [
          "written again": "\(report.healed)", "unreadable": "\(report.unreadable)", "deleted": "\(report.forgotten)",
        ])
    }
    if report.orphans > 0 {
      context.log.failure(
        "files that nothing explains were moved to the folder “orphaned”", ["moved": "\(report.orphans)"])
    }
    guard report.incoming + report.uploads + report.recordings + report.jobs > 0 else { return }
    context.log.notice(
      "removed leftovers of an earlier run",
      [
        "uploads": "\(report.incoming + report.uploads)", "recordings": "\(report.recordings)",
        "jobs": "\(report.jobs)",
      ])
  }

  /// Runs after the start, because many recordings take a while.
  private static func tendFolders(_ context: Context, _ catalog: Catalog, _ store: MediaStore, verified: Bool) {
    do {
      // Jobs are running, so a file may be lent to a running ffmpeg as well as to one left by a killed run.
      let report = try Reconciliation(catalog: catalog, store: store)
        .tendFolders(verified: verified, isLent: TemporaryAccess.settle)
      if report.corrected > 0 {
        context.log.failure("damaged rows were written again from the folders", ["recordings": "\(report.corrected)"])
      }
      if report.removed > 0 {
        context.log.notice("removed conversions that the catalog doesn't know", ["files": "\(report.removed)"])
      }
    } catch {
      context.log.failure("the recordings' folders could not be searched", ["error": logText(error)])
    }
  }

  /// Removes files that the catalog has recorded as no longer needed, then again every hour. Runs after the start, when
  /// no lease of an earlier run is left.
  ///
  /// `start` is as in `SharedUpkeep.run`: the first run looks at all recordings, the others at those of three days.
  private static func collectGarbage(
    _ context: Context, _ catalog: Catalog, createdSince start: Timestamp = Timestamp(milliseconds: 0)
  ) {
    // What a crash or a lost node has left.
    context.erasure.note()
    let isDone = removeUnneeded(context, catalog, createdSince: start)
    // Another node that is collecting may be lost.
    let pause = isDone ? 3600 : catalog.keyLeaseSeconds
    catalog.clock.after(pause, on: .global(qos: .utility)) { [weak context, weak catalog] in
      if let context, let catalog { collectGarbage(context, catalog, createdSince: catalog.time + -3 * 86_400) }
    }
  }

  /// Returns false if another node is removing objects.
  private static func removeUnneeded(
    _ context: Context, _ catalog: Catalog, createdSince start: Timestamp
  ) -> Bool {
    do {
      if let bucket = context.media.bucket { return try removeUnneeded(in: bucket, context.heldKeys) }
      guard let store = context.media.folder else { return true }
      var count = try context.blobs.removeGarbage(of: catalog)
      if catalog.isShared { count += try SharedUpkeep(catalog: catalog, store: store).run(createdSince: start) }
      if count > 0 { context.log.notice("removed files that are no longer needed", ["files": "\(count)"]) }
    } catch {
      context.log.failure("files that are no longer needed could not be removed", ["error": logText(error)])
    }
    return true
  }

  /// Removes objects that are no longer needed from a bucket. Only one node does so at a time, so that each object is
  /// deleted once.
  private static func removeUnneeded(in bucket: S3Media, _ heldKeys: HeldKeys) throws(StorageError) -> Bool {
    let name = HeldKeys.Name(tenant: .none, scope: "collecting garbage", key: "")
    var collects = false
    if case .held = try heldKeys.hold(name) { collects = true }
    defer { heldKeys.release(name) }
    try bucket.removeUnneeded(collects: collects)
    return collects
  }

  /// Runs after the start for the same reason.
  private static func lookForMissingFiles(_ context: Context) {
    do {
      let report = try context.files.sweep(giveUp: context.waveforms.giveUp)
      guard report.sounds + report.waveforms > 0 else { return }
      context.log.failure(
        "files are missing", ["sounds": "\(report.sounds)", "waveforms": "\(report.waveforms)"])
    } catch {
      context.log.failure("the files could not be compared with the catalog", ["error": logText(error)])
    }
  }

  /// Answers a request without a socket, for tests in the same process.
  package func respond(to request: HTTPRequest) async throws -> HTTPResponse {
    try await responder.respond(to: request).response
  }

  /// Restarts unfinished jobs and listens. Returns the address, for example `127.0.0.1:8080`.
  package func start() throws -> String {
    catalog.listenToOthers(
      { [context] heard in
        if case .anything = heard {
          context.changes.forgetAll()
          context.waveforms.recordingsDeleted()
        }
        context.runner.heard(heard)
      },
      onInterruption: { [context] reason in
        context.log.failure("the feed of other nodes' changes was interrupted", ["reason": reason])
      })
    try context.webhooks.resume()
    if let nodes, let (address, isLocal) = try nodes.start() {
      context.runner.announce(address: address)
      context.log.notice("other nodes' port", ["address": address])
      if isLocal {
        context.log.notice(
          "nodes on other machines can't reach this one's port for them; see --cluster-address", ["address": address])
      }
    }
    try context.runner.resume()
    context.batches.start(in: context)
    _ = try context.deletionClock.time()
    context.uploads.keepRemovingExpired()
    try startOperatorsServer()
    let address = try server.start()
    context.storeWork.start { [context, catalog, storage] in
      if storage.isVerified { Self.collectGarbage(context, catalog) }
      guard !storage.isShared, let store = storage.media.folder else { return }
      Self.tendFolders(context, catalog, store, verified: storage.isVerified)
      Self.lookForMissingFiles(context)
    }
    // An earlier run may have ended between a deletion and its erasure.
    context.erasure.note()
    context.auditOutbox?.start()
    retention.start()
    if context.media.bucket == nil { context.scrub.start() }
    watcher.start()
    if let warning = ReadinessWarning.fence(context.configuration) {
      context.log.notice("the fence is incomplete", ["code": warning.code, "detail": warning.detail])
    }
    if let risk = storage.risk {
      context.log.failure("the database may lose what clients were told", ["risk": "\(risk)"])
    }
    let cluster = context.configuration.cluster
    context.log.notice(
      "listening",
      storage.isShared
        ? ["address": "\(address)", "node": catalog.holder.node, "role": cluster.role.rawValue]
        : ["address": "\(address)", "data": context.configuration.dataDirectory])
    return "\(address)"
  }

  /// Reads the files of keys and secrets again, as at SIGHUP.
  package func reload() { watcher.reload() }

  /// Begins no more jobs and lets those that run finish, within the configured time; meanwhile, `/readyz` says that the
  /// service is leaving, and it still answers requests. Then do `stop`.
  package func drain() async {
    context.readiness.drain()
    let seconds = context.configuration.cluster.drainSeconds
    guard seconds > 0 else { return }
    context.log.notice("draining", ["seconds": "\(seconds)"])
    await context.runner.drain(within: seconds)
  }

  /// Ends the jobs' children at once, stops accepting connections, and lets running requests, and what the jobs' ends
  /// need of a store, finish within the grace period.
  package func stop() async {
    let grace = context.configuration.gracePeriodSeconds
    // On a queue of its own, because work that blocks may have all threads of shared ones.
    context.clock.after(grace, on: DispatchQueue(label: "end of calls")) { [storage] in
      storage.media.endCalls()
    }
    context.runner.live.endWaits()
    context.changes.endWaits()
    retention.stop()
    context.scrub.stop()
    watcher.stop()
    // Doesn't wait for the requests, which may take a while: a job that one of them adds now waits for the next start.
    async let jobs: Void = context.runner.stop()
    await server.stop(within: grace)
    await operators?.stop(within: 1)
    await nodes?.stop()
    await jobs
    await context.webhooks.stop()
    catalog.stopListeningToOthers()
    context.scratch.disk.removeIntakeFolders()
    do { try context.deletionClock.remember() } catch {
      context.log.failure("the clock could not be noted", ["error": logText(error)])
    }
    context.erasure.finish()
    context.auditOutbox?.stop()
    closeCatalog()
    context.log.notice("stopped")
  }

  /// Moves the whole catalog into its one file, so that a copy of the data folder is a backup.
  private func closeCatalog() {
    guard !storage.isShared, let store = storage.media.folder else { return }
    do {
      try Reconciliation(catalog: catalog, store: store).forgetRemovals()
      // The catalog isn't closed: work begun after the start may still read it.
      try catalog.checkpoint()
    } catch {
      context.log.failure("the catalog could not be closed", ["error": logText(error)])
    }
  }
}
