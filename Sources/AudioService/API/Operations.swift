import CViewer
import HTTP
import Jobs
import Terms

/// Requests by operators: health, readiness, and metrics; and the service's own files.
struct Operations: Sendable {
  let context: Context
  private let openAPIDocument: Representation
  private let viewerPage: Representation

  init(context: Context) {
    self.context = context
    openAPIDocument = Self.openAPIDocument(at: context.configuration.basePath)
    viewerPage = ViewerFiles.page(mediaOrigin: context.redirects?.origin)
  }

  private struct Health: Encodable { let status: String }

  private struct Ready: Encodable {
    /// This service among those that share its catalog.
    struct Node: Encodable {
      let name, role: String
      let catalogSeconds: Double
      let feedAgeSeconds: Double?

      private enum CodingKeys: String, CodingKey {
        case name, role
        case catalogSeconds = "catalog_seconds"
        case feedAgeSeconds = "feed_age_seconds"
      }
    }

    let status: String
    let node: Node?
    let warnings: [Warning]
  }

  @Sendable func health(_ request: HTTPRequest, _ parameters: PathParameters) throws -> HTTPAnswer {
    try QueryParameters.checkNone(request)
    return .now(try .json(.ok, Health(status: "ok"), fields: ["Cache-Control": "no-store"]))
  }

  /// Checks that files and the catalog can be written, that the disk has room, and that the program for workers exists.
  /// Conditions that a person should look at although the service works are listed as warnings. With `own`, so are
  /// faults that all nodes have, since each of them answers what it can.
  @Sendable func readiness(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    let isOwn = try QueryParameters(request, known: ["own"]).flag("own")
    let finding = await context.readiness.finding()
    let context = context
    let sharesDisk = context.media.bucket == nil
    let isImpaired = isOwn && finding.isCommon(hasPeers: context.feed != nil, sharesDisk: sharesDisk)
    guard finding == .ready || isImpaired else { throw RequestError.serviceUnready(finding) }
    var warnings: [Warning] = []
    if isImpaired {
      let problem = problem(for: finding)
      warnings.append(Warning(code: problem.code, detail: problem.detail))
    }
    warnings += await context.work.run { ReadinessWarning.all(context) }
    return try .json(
      .ok, Ready(status: isImpaired ? "impaired" : "ready", node: node, warnings: warnings),
      fields: ["Cache-Control": "no-store"])
  }

  /// nil if no other process shares the catalog.
  private var node: Ready.Node? {
    guard let feed = context.feed else { return nil }
    return Ready.Node(
      name: feed.node, role: context.configuration.cluster.role.rawValue, catalogSeconds: context.catalogSeconds,
      feedAgeSeconds: feed.ageSeconds.map { ($0 * 1000).rounded() / 1000 })
  }

  @Sendable func metrics(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try QueryParameters.checkNone(request)
    let context = context
    let isReady = await context.readiness.finding() == .ready
    let text = await context.work.run { context.metricsText(isReady: isReady) }
    return HTTPResponse(
      .ok, fields: ["Content-Type": "text/plain; version=0.0.4; charset=utf-8", "Cache-Control": "no-store"],
      body: .bytes(Array(text.utf8)))
  }

  @Sendable func openAPI(_ request: HTTPRequest, _ parameters: PathParameters) throws -> HTTPAnswer {
    try QueryParameters.checkNone(request)
    return .now(HTTPResponse(openAPIDocument, for: request))
  }

  /// A query is allowed, because it is for the page's own script.
  @Sendable func page(_ request: HTTPRequest, _ parameters: PathParameters) throws -> HTTPAnswer {
    .now(HTTPResponse(viewerPage, for: request))
  }

  /// Returns openapi.yaml as served: with this service's base path as the server's URL.
  private static func openAPIDocument(at base: BasePath) -> Representation {
    let text = unsafe String(
      decoding: UnsafeBufferPointer(start: stillwave_openapi_yaml_start(), count: stillwave_openapi_yaml_size),
      as: UTF8.self)
    let server = "- { url: /,"
    let isAtRoot = base == .root
    precondition(isAtRoot || text.contains(server), "openapi.yaml has no line “\(server)”")
    let served = isAtRoot ? text : text.replacing(server, with: "- { url: \(base.text),", maxReplacements: 1)
    return Representation(embedded: Array(served.utf8), contentType: "application/yaml")
  }
}
