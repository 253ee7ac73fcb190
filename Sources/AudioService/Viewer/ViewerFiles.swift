import CViewer
import HTTP
import Storage

/// The pages and their files, all of them embedded in the program.
///
/// The files aren't part of the API, and so not of openapi.yaml: their names may change with every release.
enum ViewerFiles {
  /// Where the page finds its files. This route and the page itself are the only ones that openapi.yaml doesn't list.
  static let route = ServiceRoute(
    .get, "/viewer/{file}",
    open: { request, parameters in
      guard let file = files[parameters["file"]] else { throw RoutingError.notFound.problem }
      return .now(HTTPResponse(file, for: request))
    })

  /// Returns a page. `mediaOrigin` is where requests for audio may be sent to; nil for nowhere else. `ancestors`: the
  /// source list of pages that may show it in a frame. `fields`: more fields.
  static func page(
    _ name: String = "index.html", mediaOrigin: String? = nil, ancestors: String = "'none'", fields: HTTPFields = [:]
  ) -> Representation {
    var all = pageFields(mediaOrigin: mediaOrigin, ancestors: ancestors)
    for (name, value) in fields { all[name] = value }
    return file(name, fields: all)
  }

  /// Returns a file with these fields.
  static func file(_ name: String, fields: HTTPFields) -> Representation {
    guard let bytes = sources[name] else { preconditionFailure("CViewer.c doesn't list \(name)") }
    return Representation(embedded: bytes, contentType: contentType(name), fields: fields)
  }

  /// The page loads only its own files and the API's responses, and no text is turned into markup.
  private static func pageFields(mediaOrigin: String? = nil, ancestors: String = "'none'") -> HTTPFields {
    let media = ["'self'", mediaOrigin].compactMap(\.self).joined(separator: " ")
    let policy = """
      default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
      media-src \(media); base-uri 'none'; form-action 'none'; frame-ancestors \(ancestors); \
      require-trusted-types-for 'script'
      """
    return ["Content-Security-Policy": policy, "Referrer-Policy": "no-referrer"]
  }

  private static let files: [String: Representation] = Dictionary(
    uniqueKeysWithValues: sources.keys.map { ($0, $0.hasSuffix(".html") ? page($0) : file($0, fields: [:])) })

  /// The bytes of the files, by name.
  private static let sources: [String: [UInt8]] = {
    let table = unsafe UnsafeBufferPointer(start: stillwave_viewer_files_start(), count: stillwave_viewer_file_count)
    var sources: [String: [UInt8]] = [:]
    for index in 0..<stillwave_viewer_file_count {
      let file = unsafe table[index]
      let name = unsafe String(cString: file.name)
      let source = PageSource(bytes: unsafe Array(UnsafeBufferPointer(start: file.bytes, count: file.size)))
      let hasComments = name.hasSuffix(".js") || name.hasSuffix(".css")
      sources[name] = hasComments ? source.withoutComments : source.bytes
    }
    return sources
  }()

  private static func contentType(_ name: String) -> String {
    switch name.split(separator: ".").last {
    case "js": "text/javascript; charset=utf-8"
    case "css": "text/css; charset=utf-8"
    case "svg": "image/svg+xml"
    case "md", "txt": "text/plain; charset=utf-8"
    default: "text/html; charset=utf-8"
    }
  }
}

extension Representation {
  /// A file that is embedded in the program.
  init(embedded bytes: [UInt8], contentType: String, fields: HTTPFields = [:]) {
    var hash = SHA256()
    hash.update(bytes.span)
    self.init(
      body: .bytes(bytes), contentType: contentType, etag: "\"\(hash.hexDigest().prefix(32))\"",
      cacheControl: "no-cache", fields: fields, isPermanent: true)
  }
}
