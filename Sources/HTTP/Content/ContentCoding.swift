import Dispatch
import Synchronization

// Content codings (RFC 9110 §8.4, §12.5.3): gzip and zstd (RFC 8878), for text of more than 1 KiB, if the client
// accepts one of them. The coded form has different bytes and so needs its own strong tag: "tag-gzip" besides "tag".
// Conditions accept each tag for the same state of a resource, except If-Range, because ranges refer to the plain form.

/// Compresses the responses of another responder if the client accepts it, unless their handler has. What takes
/// noticeable time isn't compressed on an event loop.
package final class ContentCoder: HTTPResponder {
  private let next: any HTTPResponder
  private static let queue = DispatchQueue(label: "compression", attributes: .concurrent)

  /// Creates a coder for the responses of `next`.
  package init(_ next: any HTTPResponder) { self.next = next }

  /// Returns the response of `next`, compressed if that is worthwhile.
  package func respond(to request: HTTPRequest) -> HTTPAnswer {
    let answer = next.respond(to: request)
    // A request without conditions or codings gets the response as is; a cacheable response already carries its `Vary`.
    if request.isPlain { return answer }
    switch answer {
    case .now(let response):
      switch response.coded(for: request) {
      case .done(let coded): return .now(coded)
      case .pending(let work): return .later { await Self.run(work) }
      }
    case .later(let work):
      return .later {
        switch try await work().coded(for: request) {
        case .done(let coded): coded
        case .pending(let work): await Self.run(work)
        }
      }
    }
  }

  fileprivate static func run<R: Sendable>(_ work: @escaping @Sendable () -> R) async -> R {
    await withCheckedContinuation { continuation in queue.async { continuation.resume(returning: work()) } }
  }
}

enum ContentCoding: String, CaseIterable {
  case gzip, zstd

  /// Shorter content gains nothing noticeable.
  static let leastBytes = 1024
  /// Content up to this length is compressed on the event loop, in 30 to 80 µs.
  static let mostBytesOnLoop = 8 * 1024
  /// Content up to this length is compressed whole; longer content as the client reads it.
  static let mostBytesAtOnce = 64 * 1024

  /// Whether compression makes content of this media type smaller.
  static func isWorthwhile(_ contentType: String) -> Bool {
    // The most common type first: parsing a media type costs as much as parsing a head.
    if contentType == "application/json" { return true }
    let type = contentType.split(separator: ";").first?.trimmingBlanks().lowercased() ?? ""
    // Events must be sent as they happen; a coder would hold them back until it has a full block.
    if type == "text/event-stream" { return false }
    return type.hasPrefix("text/") || type.hasSuffix("+json") || type.hasSuffix("+xml")
      || ["application/json", "application/yaml", "application/javascript"].contains(type)
  }

  /// Returns the tag of the coded form. Weak tags stay the same, because they don't identify exact bytes.
  func tag(_ etag: String) -> String {
    let suffix = "-\(rawValue)\""
    return etag.hasPrefix("W/") || etag.hasSuffix(suffix) ? etag : etag.dropLast() + suffix
  }

  func stream() -> any CompressionStream & Sendable {
    switch self {
    case .gzip: GzipStream()
    case .zstd: ZstdStream()
    }
  }

  /// Returns the coding that a request accepts and likes at least as much as any other and the plain form; zstd rather
  /// than gzip, because it takes a little less time and room. nil if that is the plain form.
  static func accepted(by request: HTTPRequest) -> ContentCoding? {
    guard request.fields.contains("Accept-Encoding") else { return nil }
    var (gzip, zstd, any, identity): (Int?, Int?, Int?, Int?)
    for element in request.fields.list("Accept-Encoding").map(WeightedName.init) {
      switch element.name {
      case "gzip", "x-gzip": gzip = element.weight
      case "zstd": zstd = element.weight
      case "*": any = element.weight
      case "identity": identity = element.weight
      default: break
      }
    }
    let (plain, other) = (identity ?? 0, gzip ?? any ?? 0)
    if let zstd, zstd > 0, zstd >= max(plain, other) { return .zstd }
    return other > 0 && other >= plain ? .gzip : nil
  }
}

/// The compressed forms of content in memory, made on first use, so that repeated requests for the same object don't
/// compress it again.
final class CodedForms: Sendable {
  private let isPermanent: Bool
  private let made = Mutex<[ContentCoding: [UInt8]]>([:])

  /// `isPermanent`: whether the content stays the same while the process runs, so that compressing it well pays.
  init(isPermanent: Bool) { self.isPermanent = isPermanent }

  /// Returns the form if it has been made.
  func known(_ coding: ContentCoding) -> [UInt8]? { made.withLock { $0[coding] } }

  /// Returns the form of `content`, which is always the same.
  func form(_ coding: ContentCoding, of content: [UInt8]) -> [UInt8] {
    if let known = known(coding) { return known }
    let form = coding.compress(content, isThorough: isPermanent)
    made.withLock { $0[coding] = form }
    return form
  }
}

extension HTTPFields {
  /// Adds a name to `Vary` unless it is already there.
  mutating func vary(by name: String) {
    guard !list("Vary", contains: name) else { return }
    self["Vary"] = self["Vary"].map { "\($0), \(name)" } ?? name
  }
}

extension HTTPResponse {
  enum Coded {
    case done(HTTPResponse)
    /// Takes too long for an event loop.
    case pending(@Sendable () -> HTTPResponse)
  }

  /// Returns the response with its content compressed, if the request accepts that and it is worthwhile.
  func coded(for request: HTTPRequest) -> Coded {
    guard request.fields.contains("Accept-Encoding") else { return .done(self) }
    if let length = body.length, length <= ContentCoding.leastBytes { return .done(self) }
    guard !status.forbidsContent, !fields.contains("Content-Encoding"), !fields.contains("Content-Range"),
      let type = fields["Content-Type"], ContentCoding.isWorthwhile(type)
    else { return .done(self) }
    var plain = self
    plain.fields.vary(by: "Accept-Encoding")
    guard let coding = ContentCoding.accepted(by: request) else { return .done(plain) }
    if case .stream(_, let next) = body { return .done(plain.with(.coding(next, coding), coding)) }
    // Files on disk are sent as they are.
    guard let bytes = body.bytesAtHand else { return .done(plain) }
    if bytes.count > ContentCoding.mostBytesAtOnce { return .done(plain.with(.coding(bytes, coding), coding)) }
    if let known = forms?.known(coding) { return .done(plain.with(.bytes(known), coding)) }
    let (forms, whole) = (forms ?? CodedForms(isPermanent: false), plain)
    let work = { @Sendable in whole.with(.bytes(forms.form(coding, of: bytes)), coding) }
    return bytes.count <= ContentCoding.mostBytesOnLoop ? .done(work()) : .pending(work)
  }

  /// Returns the response with its content compressed, if the request accepts that and it is worthwhile. Compresses on
  /// this thread, so call it where content was made that takes time: `ContentCoder` would change to another thread.
  package func codedHere(for request: HTTPRequest) -> HTTPResponse {
    switch coded(for: request) {
    case .done(let coded): coded
    case .pending(let work): work()
    }
  }

  private func with(_ body: ResponseBody, _ coding: ContentCoding) -> HTTPResponse {
    var response = self
    response.body = body
    response.fields["Content-Encoding"] = coding.rawValue
    if let etag = fields["ETag"] { response.fields["ETag"] = coding.tag(etag) }
    return response
  }
}

extension ResponseBody {
  fileprivate static func coding(_ bytes: [UInt8], _ coding: ContentCoding) -> ResponseBody {
    let rest = Mutex(bytes[...])
    return Self.coding(
      {
        rest.withLock { rest in
          let piece = Array(rest.prefix(16 * 1024))
          rest = rest.dropFirst(piece.count)
          return piece.isEmpty ? nil : piece
        }
      }, coding)
  }

  fileprivate static func coding(
    _ next: @escaping @Sendable () async throws -> [UInt8]?, _ coding: ContentCoding
  ) -> ResponseBody {
    let coder = StreamCoder(coding)
    return .stream(length: nil) {
      while !coder.hasEnded {
        let piece = try await next()
        let isShort = piece?.count ?? 0 <= ContentCoding.mostBytesOnLoop
        let coded = isShort ? coder.code(piece) : await ContentCoder.run { coder.code(piece) }
        if !coded.isEmpty { return coded }
      }
      return nil
    }
  }
}

/// The state of a compressed stream. A single producer asks for one piece at a time.
private final class StreamCoder: Sendable {
  private struct State {
    let stream: any CompressionStream & Sendable
    var hasEnded = false
  }
  private let state: Mutex<State>

  init(_ coding: ContentCoding) { state = Mutex(State(stream: coding.stream())) }

  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  func code(_ piece: [UInt8]?) -> [UInt8] {
    state.withLock { state in
      state.hasEnded = piece == nil
      return state.stream.compress(piece ?? [], isLast: piece == nil)
    }
  }
}
