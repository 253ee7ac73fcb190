import CViewer
import HTTP
import Storage

/// What operators ask: is it alive, can it work, how is it doing; and the service's own files.
struct Operations: Sendable {
  let context: Context

  private struct Health: Encodable { let status: String }

  @Sendable func health(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try QueryParameters(request).end()
    return try .json(.ok, Health(status: "ok"), fields: ["Cache-Control": "no-store"])
  }

  /// Ready is who can write files and the catalogue, has room on the disk and a program to start workers from.
  @Sendable func readiness(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try QueryParameters(request).end()
    let finding = await context.readiness.finding()
    guard let (code, detail) = Self.words(finding) else {
      return try .json(.ok, Health(status: "ready"), fields: ["Cache-Control": "no-store"])
    }
    context.log.notice("not ready", ["finding": "\(finding)"])
    throw Problem(.serviceUnavailable, code: code, detail: detail)
  }

  /// Code and sentence for what stands in the way; the particulars are for the log.
  private static func words(_ finding: Readiness.Finding) -> (code: String, detail: String)? {
    switch finding {
    case .ready: nil
    case .diskIsFull: ("disk_full", "The disk is full, but for what is kept in reserve.")
    case .diskFails: ("disk_unwritable", "Files can't be written in the data folder; is its disk read-only?")
    case .catalogueFails: ("catalog_unwritable", "The catalogue can't be written.")
    case .catalogueIsBusy:
      ("catalog_busy", "The catalogue doesn't answer: another program holds its lock, or the disk hangs.")
    case .programIsMissing: ("worker_missing", "The program that workers are started from is gone or can't be run.")
    }
  }

  @Sendable func metrics(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try QueryParameters(request).end()
    return HTTPResponse(
      .ok, fields: ["Content-Type": "text/plain; version=0.0.4; charset=utf-8", "Cache-Control": "no-store"],
      body: .bytes(Array(context.metrics.text(liveJobs: context.runner.live.count).utf8)))
  }

  @Sendable func openAPI(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try QueryParameters(request).end()
    return HTTPResponse(Self.openAPIDocument, for: request)
  }

  /// The query, if there is one, is for the page's own script.
  @Sendable func page(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    HTTPResponse(Self.indexPage, for: request)
  }

  /// The page is one file: it loads nothing but what it asks the API for.
  private static let pagePolicy = """
    default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; \
    media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'
    """

  private static let openAPIDocument = unsafe embedded(
    stillwave_openapi_yaml_start(), count: stillwave_openapi_yaml_size, contentType: "application/yaml")
  private static let indexPage = unsafe embedded(
    stillwave_index_html_start(), count: stillwave_index_html_size, contentType: "text/html; charset=utf-8",
    fields: ["Content-Security-Policy": pagePolicy])

  /// A file that is part of the program.
  @unsafe
  private static func embedded(
    _ start: UnsafePointer<UInt8>?, count: Int, contentType: String, fields: HTTPFields = [:]
  ) -> Representation {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    var hash = SHA256()
    hash.update(bytes.span)
    return Representation(
      body: .bytes(bytes), contentType: contentType, etag: "\"\(hash.hexDigest().prefix(32))\"",
      cacheControl: "no-cache", fields: fields)
  }
}
