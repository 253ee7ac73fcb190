import CViewer
import HTTP

/// What operators ask: is it alive, can it work, how is it doing; and the service's own files.
struct Operations: Sendable {
  let context: Context

  private struct Health: Encodable { let status: String }

  @Sendable func health(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try QueryParameters.checkNone(request)
    return try .json(.ok, Health(status: "ok"), fields: ["Cache-Control": "no-store"])
  }

  /// Ready is who can write files and the catalogue, has room on the disk and a program to start workers from.
  @Sendable func readiness(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try QueryParameters.checkNone(request)
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
    try QueryParameters.checkNone(request)
    return HTTPResponse(
      .ok, fields: ["Content-Type": "text/plain; version=0.0.4; charset=utf-8", "Cache-Control": "no-store"],
      body: .bytes(Array(context.metrics.text(liveJobs: context.runner.live.count).utf8)))
  }

  @Sendable func openAPI(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    try QueryParameters.checkNone(request)
    return HTTPResponse(Self.openAPIDocument, for: request)
  }

  /// The query, if there is one, is for the page's own script.
  @Sendable func page(_ request: HTTPRequest, _ parameters: PathParameters) async throws -> HTTPResponse {
    HTTPResponse(ViewerFiles.page, for: request)
  }

  private static let openAPIDocument = Representation(
    embedded: unsafe Array(
      UnsafeBufferPointer(start: stillwave_openapi_yaml_start(), count: stillwave_openapi_yaml_size)),
    contentType: "application/yaml")
}
