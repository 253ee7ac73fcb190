import Glibc
import HTTP
import Logging
import Storage

/// The whole service: catalogue, files, jobs and server, from start to stop.
public final class Service: Sendable {
  private let context: Context
  private let responder: any HTTPResponder
  private let server: HTTPServer
  private let retention: Retention

  /// Opens the data directory (which is made where it is missing) and sweeps what a crash has left.
  ///
  /// Throws where the directory can't be used or another service uses it.
  public init(_ configuration: Configuration, logger: Logger) throws(StorageError) {
    let log = ServiceLog(logger)
    let work = WorkQueue(label: "storage")
    let store = try MediaStore(directory: configuration.dataDirectory)
    try store.claim()
    let catalog = try Catalog(path: configuration.dataDirectory + "/catalog.sqlite")
    let context = Context(configuration, catalog: catalog, store: store, work: work, log: log)
    self.context = context
    retention = Retention(context)
    // A file at the largest size that the process may write is an error of that write, not the process's end.
    _ = signal(SIGXFSZ, SIG_IGN)
    var http = HTTPServerConfiguration()
    http.host = configuration.host
    http.port = configuration.port
    http.limits = configuration.httpLimits
    http.responseFields = ["X-Content-Type-Options": "nosniff"]
    if log.tellsRequests { http.onCompleted = log.request }
    responder = AudioService.responder(context) { error, request in
      let problem = problem(for: error)
      context.log.answered(request, with: problem, for: error)
      return problem.response()
    }
    HTTPServer.raiseDescriptorLimit(forConnections: configuration.httpLimits.connectionCount)
    let server = HTTPServer(http, responder: responder)
    self.server = server
    context.metrics.watch { [weak server] in server?.statistics ?? ServerStatistics() }
    Self.sweep(context)
  }

  /// Removes files that no row owns. A catalogue that fails to answer owns everything.
  private static func sweep(_ context: Context) {
    let catalog = context.catalog
    let unfinished = (try? catalog.unfinishedUploads()).map { Set($0.map(\.id)) }
    let report = context.store.sweep(
      uploads: { id in unfinished?.contains(id) ?? true },
      recordings: { id in Self.owns(catalog, id) },
      jobs: { _ in false })
    do {
      let lost = try LostParts(catalog: catalog, store: context.store).settle()
      if lost.gone + lost.short > 0 {
        context.log.failure("unfinished uploads lost bytes", ["all": "\(lost.gone)", "some": "\(lost.short)"])
      }
    } catch {
      context.log.failure("the unfinished uploads could not be held against their files", ["error": logText(error)])
    }
    guard report.incoming + report.uploads + report.recordings + report.jobs > 0 else { return }
    context.log.notice(
      "removed what an earlier run left",
      [
        "uploads": "\(report.incoming + report.uploads)", "recordings": "\(report.recordings)",
        "jobs": "\(report.jobs)",
      ])
  }

  /// After the start, as it takes a while where there are many.
  private static func lookForMissingFiles(_ context: Context) {
    do {
      let report = try MissingFiles(catalog: context.catalog, store: context.store).sweep()
      guard report.sounds + report.waveforms > 0 else { return }
      context.log.failure(
        "files are missing", ["sounds": "\(report.sounds)", "waveforms": "\(report.waveforms)"])
    } catch {
      context.log.failure("the files could not be held against the catalogue", ["error": logText(error)])
    }
  }

  private static func owns(_ catalog: Catalog, _ id: RecordingID) -> Bool {
    do { return try catalog.recording(id) != nil } catch { return true }
  }

  /// For tests in process: the answer to a request without a socket.
  public func respond(to request: HTTPRequest) async throws -> HTTPResponse {
    try await responder.respond(to: request).response
  }

  /// Begins unfinished jobs again and listens. Returns the address, for example `127.0.0.1:8080`.
  public func start() throws -> String {
    try context.webhooks.resume()
    try context.runner.resume()
    context.uploads.keepRemovingExpired()
    let address = try server.start()
    context.work.start { [context] in Self.lookForMissingFiles(context) }
    retention.start()
    context.log.notice("listening", ["address": "\(address)", "data": context.configuration.dataDirectory])
    return "\(address)"
  }

  /// Ends the jobs' children at once, stops accepting, lets running requests finish within the grace period.
  public func stop() async {
    context.runner.live.endWaits()
    retention.stop()
    // Not after the requests, which may take their time: a job that one of them still brings waits for the next start.
    async let jobs: Void = context.runner.stop()
    await server.stop(within: context.configuration.gracePeriodSeconds)
    await jobs
    await context.webhooks.stop()
    context.log.notice("stopped")
  }
}
