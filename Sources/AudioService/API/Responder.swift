import HTTP

/// Returns the whole service as one responder: the routes, wrapped in what applies to every request.
func responder(
  _ context: Context, problem: @escaping @Sendable (any Error, HTTPRequest) -> HTTPResponse
) -> any HTTPResponder {
  let configuration = context.configuration
  var responder: any HTTPResponder = Router(
    routes: routes(context).map(context.answeringDeleted) + [ViewerFiles.route]
  ) { error, request in
    var response = problem(error, request)
    if request.isTus { response.fields["Tus-Resumable"] = Tus.version }
    return response
  }
  responder = HostGuard(
    names: configuration.allowedHosts, origins: configuration.corsOrigins,
    setting: "--allowed-hosts or STILLWAVE_ALLOWED_HOSTS", responder)
  if configuration.basePath != .root { responder = BasePathResponder(configuration.basePath, responder) }
  responder = ContentCoder(responder)
  guard configuration.corsOrigins != .only([]) else { return responder }
  return CrossOriginSharing(.service(configuration.corsOrigins), responder)
}

/// Returns the function that formats the server's own refusals, which occur before there is a request.
func refusal(_ configuration: Configuration) -> @Sendable (Problem, HTTPFields) -> HTTPResponse {
  let base = configuration.basePath
  guard configuration.corsOrigins != .only([]) else { return { problem, _ in base.prefixing(problem.response()) } }
  let policy = CrossOriginPolicy.service(configuration.corsOrigins)
  return { problem, fields in policy.sharing(base.prefixing(problem.response()), withRequestOf: fields) }
}

extension CrossOriginPolicy {
  fileprivate static func service(_ origins: AllowedOrigins) -> CrossOriginPolicy {
    CrossOriginPolicy(
      origins: origins,
      requestFields: [
        "Accept", "Authorization", "Content-Disposition", "Content-Type", "Idempotency-Key", "If-Match",
        "If-None-Match", "If-Range", "Last-Event-ID", "Range", "Traceparent", "Tus-Resumable", "Upload-Checksum",
        "Upload-Concat", "Upload-Defer-Length", "Upload-Length", "Upload-Metadata", "Upload-Offset",
        "X-HTTP-Method-Override",
        "X-Request-Id",
      ],
      exposedFields: [
        "Accept-Ranges", "Content-Disposition", "Content-Range", "ETag", "Idempotency-Replayed", "Link", "Location",
        "Retry-After",
        "Stillwave-Available-Frames", "Stillwave-Complete", "Stillwave-Left-Out", "Stillwave-Recording",
        "Stillwave-Start-Frame",
        "Tus-Checksum-Algorithm", "Tus-Extension", "Tus-Max-Size", "Tus-Resumable", "Tus-Version", "Upload-Expires",
        "Upload-Length",
        "Upload-Metadata", "Upload-Offset", "X-Request-Id",
      ])
  }
}
