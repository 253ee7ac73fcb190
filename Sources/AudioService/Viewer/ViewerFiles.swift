import CViewer
import HTTP
import Storage

/// The page at `/` and the files it consists of, all of them part of the program.
///
/// The sources are written to be read; they are sent without comments and indentation, which are a quarter of the
/// bytes.
///
/// The files are no part of the API, and so not of openapi.yaml: their names may change with every release.
enum ViewerFiles {
  /// Where the page finds its files. It and the page alone are served beside the routes of the contract.
  static let route = Route(.get, "/viewer/{file}") { request, parameters async throws in
    guard let file = files[parameters["file"]] else { throw RoutingError.notFound.problem }
    return HTTPResponse(file, for: request)
  }

  /// The page itself.
  static let page = files["index.html", default: none]

  /// The page loads nothing but its own files and what the API answers, and no markup is made of text.
  private static let policy = """
    default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; media-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'
    """

  private static let none = representation([], name: "")

  private static let files: [String: Representation] = {
    let table = unsafe UnsafeBufferPointer(start: stillwave_viewer_files_start(), count: stillwave_viewer_file_count)
    var files: [String: Representation] = [:]
    for index in 0..<stillwave_viewer_file_count {
      let file = unsafe table[index]
      let name = unsafe String(cString: file.name)
      files[name] = representation(
        unsafe Array(UnsafeBufferPointer(start: file.bytes, count: file.size)), name: name)
    }
    return files
  }()

  private static func representation(_ bytes: [UInt8], name: String) -> Representation {
    let hasComments = name.hasSuffix(".js") || name.hasSuffix(".css")
    return Representation(
      embedded: ViewerText.compact(bytes, hasComments: hasComments), contentType: contentType(name),
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
  /// A file that is part of the program.
  init(embedded bytes: [UInt8], contentType: String, fields: HTTPFields = [:]) {
    var hash = SHA256()
    hash.update(bytes.span)
    self.init(
      body: .bytes(bytes), contentType: contentType, etag: "\"\(hash.hexDigest().prefix(32))\"",
      cacheControl: "no-cache", fields: fields)
  }
}
