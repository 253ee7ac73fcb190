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

  /// Ready is who can write to the catalogue and has room on the disk.
  @Sendable func readiness(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try QueryParameters(request).end()
    let (catalog, store) = (context.catalog, context.store)
    let free: Int64
    do {
      free = try await context.work.run { () throws(StorageError) in
        try catalog.check()
        return try store.freeBytes()
      }
    } catch {
      context.log.failure("not ready", ["error": "\(error)"])
      throw Problem(.serviceUnavailable, code: "not_ready", detail: "The catalogue can't be written.")
    }
    guard free > context.configuration.reservedDiskBytes else {
      throw Problem(.serviceUnavailable, code: "not_ready", detail: "The disk is full.")
    }
    return try .json(.ok, Health(status: "ready"), fields: ["Cache-Control": "no-store"])
  }

  @Sendable func metrics(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try QueryParameters(request).end()
    return HTTPResponse(
      .ok, fields: ["Content-Type": "text/plain; version=0.0.4; charset=utf-8", "Cache-Control": "no-store"],
      body: .bytes(Array(context.metrics.text(liveJobs: context.runner.live.count).utf8)))
  }

  @Sendable func openAPI(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try QueryParameters(request).end()
    return embedded(Self.openAPIDocument, contentType: "application/yaml", for: request)
  }

  /// The query, if there is one, is for the page's own script.
  @Sendable func page(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    embedded(
      Self.indexPage, contentType: "text/html; charset=utf-8", fields: ["Content-Security-Policy": Self.pagePolicy],
      for: request)
  }

  /// The page is one file: it loads nothing but what it asks the API for.
  private static let pagePolicy = """
    default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; \
    media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'
    """

  private func embedded(
    _ file: EmbeddedFile, contentType: String, fields: HTTPFields = [:], for request: HTTPRequest
  ) -> HTTPResponse {
    HTTPResponse(
      Representation(
        body: .bytes(file.bytes), contentType: contentType, etag: file.etag, cacheControl: "no-cache", fields: fields),
      for: request)
  }

  private static let openAPIDocument = unsafe EmbeddedFile(
    stillwave_openapi_yaml_start(), count: stillwave_openapi_yaml_size)
  private static let indexPage = unsafe EmbeddedFile(stillwave_index_html_start(), count: stillwave_index_html_size)
}

/// A file that is part of the program.
private struct EmbeddedFile: Sendable {
  let bytes: [UInt8]
  let etag: String

  @unsafe
  init(_ start: UnsafePointer<UInt8>?, count: Int) {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    var hash = SHA256()
    hash.update(bytes.span)
    self.bytes = bytes
    etag = "\"\(hash.hexDigest().prefix(32))\""
  }
}
