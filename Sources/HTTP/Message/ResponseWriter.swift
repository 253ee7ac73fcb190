import Terms

// A response's head (RFC 9112 §4, §6), built by appending bytes to one array:
//
//   HTTP/1.1 200 OK CRLF  Date  the response's fields  the server's fields  X-Request-Id  framing  Connection  CRLF

/// How the end of a response's content is marked.
enum ResponseFraming: Equatable {
  /// A 204 or 304, which carries no length.
  case noContent
  case length(Int64)
  case chunked
  /// For HTTP/1.0, which has no chunks.
  case untilClose
}

/// Writes heads and chunks.
struct ResponseWriter: Sendable {
  /// Fields added to every response that lacks them.
  let defaults: HTTPFields

  /// What a head depends on besides the handler's response.
  struct Context {
    var method: HTTPMethod = .get
    var version: HTTPVersion = .http11
    var isPersistent = false
    var requestID = ""
    /// `Date: Sun, 06 Nov 1994 08:49:37 GMT CRLF`
    var dateLine: [UInt8] = []
  }

  /// Returns how a response's content ends.
  static func framing(of response: HTTPResponse, version: HTTPVersion) -> ResponseFraming {
    if response.status.forbidsContent { return .noContent }
    if let length = response.body.length { return .length(length) }
    return version == .http11 ? .chunked : .untilClose
  }

  /// Whether content follows the head.
  static func sendsContent(_ response: HTTPResponse, method: HTTPMethod) -> Bool {
    method != .head && !response.status.forbidsContent
  }

  /// Fields set by the server; those from handlers are dropped.
  private static let serversOwn = ["Content-Length", "Transfer-Encoding", "Connection", "Date", "X-Request-Id"]

  /// An upper bound on the bytes of the server's own fields, without the date and the request's ID.
  private static let ownRoom = 160

  /// Returns the head, including its empty line.
  func head(of response: HTTPResponse, framing: ResponseFraming, _ context: Context) -> [UInt8] {
    var fields = response.fields
    if Self.serversOwn.contains(where: fields.contains) {
      for name in Self.serversOwn { fields.remove(name) }
    }
    let statusLine = response.status.statusLine
    let requestID = context.requestID
    let room =
      Self.ownRoom + statusLine.count + context.dateLine.count + fields.lines.count + defaults.lines.count
      + requestID.utf8.count
    var head: [UInt8] = []
    head.append(addingCapacity: room) { head in
      head.append(copying: statusLine.span)
      head.append(copying: context.dateLine.span)
      head.append(copying: fields.lines.span)
      defaults.appendLines(missingIn: response.fields, to: &head)
      if !requestID.isEmpty {
        head.append(literal: "X-Request-Id: ")
        head.append(copying: requestID.utf8.span)
        head.append(literal: "\r\n")
      }
      switch framing {
      case .noContent, .untilClose: break
      case .chunked: head.append(literal: "Transfer-Encoding: chunked\r\n")
      case .length(let length):
        head.append(literal: "Content-Length: ")
        head.append(decimal: length)
        head.append(literal: "\r\n")
      }
      if !context.isPersistent {
        head.append(literal: "Connection: close\r\n")
      } else if context.version == .http10 {
        head.append(literal: "Connection: keep-alive\r\n")
      }
      head.append(literal: "\r\n")
    }
    return head
  }

  /// Returns one chunk (RFC 9112 §7.1). Empty content makes none, because an empty chunk would end the content.
  static func chunk(_ content: [UInt8]) -> [UInt8] {
    guard !content.isEmpty else { return [] }
    var chunk: [UInt8] = []
    chunk.reserveCapacity(content.count + 20)
    ASCII.append(hex: content.count, to: &chunk)
    chunk.append(contentsOf: "\r\n".utf8)
    chunk.append(contentsOf: content)
    chunk.append(contentsOf: "\r\n".utf8)
    return chunk
  }

  /// The chunk that ends the content.
  static let lastChunk = Array("0\r\n\r\n".utf8)
  /// The interim response for a client that sent `Expect: 100-continue`.
  static let continueLine = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
}
