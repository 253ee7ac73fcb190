import CViewer
import HTTP
import Storage

/// The page at `/` and its files, all of them embedded in the program.
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

  /// The page itself.
  static let page = files["index.html", default: none]

  /// The page loads only its own files and the API's responses, and no text is turned into markup.
  private static let policy = """
    default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
    media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'
    """

  private static let none = representation([], name: "")

  private static let files: [String: Representation] = {
    let table = unsafe UnsafeBufferPointer(start: stillwave_viewer_files_start(), count: stillwave_viewer_file_count)
    var files: [String: Representation] = [:]
    for index in 0..<stillwave_viewer_file_count {
      let file = unsafe table[index]
      let name = unsafe String(cString: file.name)
      let source = PageSource(bytes: unsafe Array(UnsafeBufferPointer(start: file.bytes, count: file.size)))
      let hasComments = name.hasSuffix(".js") || name.hasSuffix(".css")
      files[name] = representation(hasComments ? source.withoutComments : source.bytes, name: name)
    }
    return files
  }()

  private static func representation(_ bytes: [UInt8], name: String) -> Representation {
    Representation(
      embedded: bytes, contentType: contentType(name),
      fields: name == "index.html" ? ["Content-Security-Policy": policy, "Referrer-Policy": "no-referrer"] : [:])
  }

  private static func contentType(_ name: String) -> String {
    switch name.split(separator: ".").last {
    case "js": "text/javascript; charset=utf-8"
    case "css": "text/css; charset=utf-8"
    case "svg": "image/svg+xml"
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
