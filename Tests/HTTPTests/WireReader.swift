@testable import HTTP

/// Reads a connection's bytes like the server does, but with only the parser and the framing: requests, and possibly
/// the status of a refusal.
struct WireReader {
  struct Request: Equatable {
    var method: String
    var path: String
    var body: String
  }

  private(set) var requests: [Request] = []
  /// The heads of `requests`.
  private(set) var heads: [RequestHead] = []
  private(set) var refusal: Int?
  /// The caller's own ID in a refused request.
  private(set) var refusedIdentifier: String?
  /// Whether the input ended inside a request.
  private(set) var isIncomplete = false
  private let limits: HTTPLimits
  private var parser: RequestParser
  private var framing: BodyFraming?
  private var head: RequestHead?
  private var body: [UInt8] = []

  /// Reads `pieces` as if each arrived in one read.
  init(_ pieces: [[UInt8]], limits: HTTPLimits = HTTPLimits()) {
    self.limits = limits
    parser = RequestParser(limits: limits)
    for piece in pieces where refusal == nil { take(piece) }
  }

  /// Reads `text` in one piece.
  init(_ text: String) {
    self.init([Array(text.utf8)])
  }

  /// Returns the outcomes of splitting `text` in two at each position, and of reading single bytes. All are equal if
  /// the reader is correct.
  static func outcomesOfAllSplits(_ text: String) -> [WireReader] {
    let bytes = Array(text.utf8)
    let halves = (0...bytes.count).map { WireReader([Array(bytes[..<$0]), Array(bytes[$0...])]) }
    return halves + [WireReader(bytes.map { [$0] })]
  }

  private mutating func take(_ piece: [UInt8]) {
    var position = 0
    while position < piece.count, refusal == nil {
      position = framing == nil ? takeHead(piece, position) : takeBody(piece, position)
    }
    isIncomplete = framing != nil
  }

  private mutating func takeHead(_ piece: [UInt8], _ start: Int) -> Int {
    do throws(HTTPParseError) {
      let (found, next) = try parser.consume(piece, from: start, to: piece.count)
      if let found {
        head = found
        framing = BodyFraming(found.body, limits: limits)
        if found.body == .none { finish() }
      }
      return next
    } catch {
      refusal = error.problem.status.code
      refusedIdentifier = RequestIdentifier.callers(parser.refusedFields(in: piece[start...]))
      return piece.count
    }
  }

  private mutating func takeBody(_ piece: [UInt8], _ start: Int) -> Int {
    do throws(RequestBodyError) {
      switch try framing?.step(piece, from: start, to: piece.count) {
      case .content(let range):
        body.append(contentsOf: piece[range])
        if framing?.isComplete == true { finish() }
        return range.upperBound
      case .complete(let next):
        finish()
        return next
      case .needsInput, nil:
        if framing?.isComplete == true { finish() }
        return piece.count
      }
    } catch {
      refusal = error.problem.status.code
      return piece.count
    }
  }

  private mutating func finish() {
    guard let head else { return }
    heads.append(head)
    requests.append(
      Request(
        method: head.method.rawValue, path: head.target.path, body: String(decoding: body, as: UTF8.self)))
    (self.head, framing, body) = (nil, nil, [])
  }
}
