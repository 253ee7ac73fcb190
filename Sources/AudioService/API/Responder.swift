import HTTP

/// Returns the whole service as one responder: the routes, wrapped in what applies to every request. A node that only
/// works has only those of operators.
func responder(
  _ context: Context, problem: @escaping @Sendable (any Error, HTTPRequest) -> HTTPResponse
) -> any HTTPResponder {
  let configuration = context.configuration
  let gate = Gate(context)
  let all = routes(context) + [ViewerFiles.route]
  let served = configuration.cluster.role.answersClients ? all : all.filter(\.isForOperators)
  var responder: any HTTPResponder = Router(
    routes: served.map { context.forwarded?.forwarding($0) ?? $0 }.map(context.answeringDeleted).map(context.auditing)
      .map(
        gate.guarding), unrouted: gate.refuse
  ) { error, request in
    var response = problem(error, request)
    if request.isTus { response.fields["Tus-Resumable"] = Tus.version }
    return response
  }
  responder = HostGuard(
    names: configuration.allowedHosts, origins: configuration.corsOrigins,
    setting: "--allowed-hosts or STILLWAVE_ALLOWED_HOSTS", checksHost: !context.access.hasKeys, responder)
  if configuration.basePath != .root { responder = BasePathResponder(configuration.basePath, responder) }
  responder = ContentCoder(responder)
  guard let policy = CrossOriginPolicy(configuration) else { return responder }
  return CrossOriginSharing(policy, responder)
}

/// Returns the responder of the operators' own port: health, readiness, and metrics, without a key.
func operatorsResponder(_ context: Context) -> any HTTPResponder {
  let configuration = context.configuration
  let operatorsRoutes = routes(context).filter(\.isForOperators)
  let router = Router(
    routes: operatorsRoutes.map { route in
      Route(route.method, route.pattern) { request, parameters in
        try route.handler(request, parameters, Caller(everythingOf: request, context))
      }
    }
  ) { error, _ in AudioService.problem(for: error).response() }
  return HostGuard(
    names: configuration.allowedHosts, origins: .only([]),
    setting: "--allowed-hosts or STILLWAVE_ALLOWED_HOSTS", router)
}

extension ServiceRoute {
  fileprivate var isForOperators: Bool { rule == .operators || pattern == "/healthz" }
}

/// Returns the function that formats the server's own refusals, which occur before there is a request.
func refusal(_ configuration: Configuration) -> @Sendable (Problem, HTTPFields) -> HTTPResponse {
  let base = configuration.basePath
  guard let policy = CrossOriginPolicy(configuration) else {
    return { problem, _ in base.prefixing(problem.response()) }
  }
  return { problem, fields in policy.sharing(base.prefixing(problem.response()), withRequestOf: fields) }
}

extension CrossOriginPolicy {
  /// The policy of the service; nil if it has nothing to share.
  init?(_ configuration: Configuration) {
    let hasKeys = configuration.keysPath != nil
    guard hasKeys || configuration.corsOrigins != .only([]) else { return nil }
    self.init(
      origins: configuration.corsOrigins, sharesTokens: hasKeys,
      requestFields: [
        "Accept", "Authorization", "Content-Disposition", "Content-Type", "Idempotency-Key", "If-Match",
        "If-None-Match", "If-Range", "Last-Event-ID", "Range", "Traceparent", "Tus-Resumable", "Upload-Checksum",
        "Upload-Concat", "Upload-Defer-Length", "Upload-Length", "Upload-Metadata", "Upload-Offset",
        "X-HTTP-Method-Override",
        "X-Request-Id",
      ],
      exposedFields: [
        "Accept-Ranges", "Content-Disposition", "Content-Range", "ETag", "Idempotency-Replayed", "Link", "Location",
        "RateLimit", "RateLimit-Policy", "Retry-After",
        "Stillwave-Available-Frames", "Stillwave-Columns", "Stillwave-Complete", "Stillwave-Encoding",
        "Stillwave-Estimated-Frames", "Stillwave-Left-Out", "Stillwave-Recording", "Stillwave-Scale",
        "Stillwave-Start-Frame", "Stillwave-Total-Frames", "Stillwave-Warnings",
        "Tus-Checksum-Algorithm", "Tus-Extension", "Tus-Max-Size", "Tus-Resumable", "Tus-Version", "Upload-Concat",
        "Upload-Defer-Length", "Upload-Expires", "Upload-Length", "Upload-Metadata", "Upload-Offset",
        "WWW-Authenticate", "X-Request-Id",
      ])
  }
}
