import HTTP

/// The pages and scripts that need no key: the documentation, and what other pages embed. They hold nothing of any
/// tenant; what they show, they get with the reader's own key or with the token in their address.
struct PublicPages: Sendable {
  private let embedPage, docsPage: Representation
  private let scripts: [String: Representation]

  init(_ configuration: Configuration, mediaOrigin: String?) {
    embedPage = ViewerFiles.page(
      "embed.html", mediaOrigin: mediaOrigin, ancestors: configuration.embedOrigins.sourceList,
      fields: ["Cross-Origin-Resource-Policy": "cross-origin"])
    docsPage = ViewerFiles.page("docs.html")
    scripts = Dictionary(
      uniqueKeysWithValues: ["stillwave.js", "spectrogram.js"].map { ($0, ViewerFiles.file($0, fields: Self.shared)) })
  }

  /// Everyone may read these.
  private static let shared: HTTPFields = [
    "Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin",
  ]

  /// `GET /embed`: a page with the element alone, for iframes. Its script reads the address, whose fragment isn't sent.
  @Sendable func embed(_ request: HTTPRequest, _ parameters: PathParameters) throws -> HTTPAnswer {
    try QueryParameters.checkNone(request)
    return .now(HTTPResponse(embedPage, for: request))
  }

  /// `GET /embed/{file}`: the element's script, and the module that it loads on demand.
  @Sendable func script(_ request: HTTPRequest, _ parameters: PathParameters) throws -> HTTPAnswer {
    try QueryParameters.checkNone(request)
    guard let script = scripts[parameters["file"]] else { throw RoutingError.notFound.problem }
    return .now(HTTPResponse(script, for: request))
  }

  /// `GET /docs`: this service's API as a page.
  @Sendable func docs(_ request: HTTPRequest, _ parameters: PathParameters) throws -> HTTPAnswer {
    try QueryParameters.checkNone(request)
    return .now(HTTPResponse(docsPage, for: request))
  }

  /// `GET /oembed`: how a page shows an address of this service (oEmbed 1.0, type `rich`).
  @Sendable func oEmbed(_ request: HTTPRequest, _ parameters: PathParameters) throws -> HTTPAnswer {
    let query = try QueryParameters(request, known: ["url", "format", "maxwidth", "maxheight"])
    let _: OEmbed.Format? = try query.choice("format")
    let width = try query.integer("maxwidth", in: OEmbed.sizes) ?? .max
    let height = try query.integer("maxheight", in: OEmbed.sizes) ?? .max
    guard let url = query.string("url") else { throw RequestError.missingParameter("url", .given) }
    guard let found = OEmbed(of: url, askedOf: request, maximumWidth: width, height: height) else {
      throw RequestError.notEmbeddable
    }
    var fields = Self.shared
    fields["Cache-Control"] = "no-cache"
    return .now(try .json(.ok, found, fields: fields))
  }
}
