import HTTP

/// `GET /problems/{code}`: the page at a problem's `type`, as HTML for people or as JSON for programs.
enum ProblemPages {
  static func read(at base: BasePath, _ request: HTTPRequest, _ parameters: PathParameters) throws -> HTTPAnswer {
    try QueryParameters.checkNone(request)
    guard let kind = ProblemKind.all[parameters["code"]] else {
      throw RequestError.noSuchProblem(parameters["code"])
    }
    let types = ["text/html", "application/json"]
    let isHTML = try request.preferredType(among: types) == types[0]
    let content = try isHTML ? Array(html(kind).utf8) : JSONDocument.encoded(Document(kind, at: base))
    return .now(
      HTTPResponse(
        Representation(
          embedded: content, contentType: isHTML ? "text/html; charset=utf-8" : types[1],
          fields: ["Vary": "Accept", "Content-Security-Policy": policy]),
        for: request))
  }

  private static let policy =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

  private struct Document: Encodable {
    let type, code, title, meaning, remedy: String

    init(_ kind: ProblemKind, at base: BasePath) {
      type = base.absolute(Problem.page(of: kind.code))
      (code, title) = (kind.code, kind.title)
      (meaning, remedy) = (kind.meaning, kind.remedy)
    }
  }

  /// The links are relative, so that they also work behind a proxy's prefix.
  private static func html(_ kind: ProblemKind) -> String {
    """
    <!doctype html>
    <html lang="en">
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <title>\(escaped(kind.title)) – Stillwave</title>
    <style>:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;\
    padding:0 1rem}</style>
    <h1>\(escaped(kind.title))</h1>
    <p>The code of this problem is <code>\(kind.code)</code>.</p>
    <p>\(escaped(kind.meaning))</p>
    <h2>What to do</h2>
    <p>\(escaped(kind.remedy))</p>
    <p><a href="../openapi.yaml">The API</a> · <a href="../">Stillwave</a></p>
    </html>

    """
  }

  private static func escaped(_ text: String) -> String {
    text.reduce(into: "") { escaped, character in
      switch character {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      default: escaped.append(character)
      }
    }
  }
}
