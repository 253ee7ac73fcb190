import Synchronization

/// Why a body could not be read to its end.
package enum RequestBodyError: Error, Equatable, Sendable {
  /// It is, or says that it is, longer than the limit → 413.
  case tooLarge(limit: Int64)
  /// The client went away, or closed its half, before the end → 400 where it still listens.
  case truncated
  /// The chunks break a rule → 400.
  case malformed(Fault)
  /// The client sent too slowly, or nothing → 408.
  case timedOut

  /// What was wrong with the chunks.
  package enum Fault: String, Sendable {
    /// Not 1 to 16 hexadecimal digits and CRLF, or too large to count.
    case chunkSize = "chunk size"
    /// Longer than the limit, or with control bytes.
    case chunkExtension = "chunk extension"
    /// The data is not followed by CRLF.
    case chunkEnd = "chunk end"
    /// Longer than the limit, or not a field.
    case trailer
  }

  /// The answer for the client.
  package var problem: Problem {
    switch self {
    case .tooLarge(let limit):
      Problem(
        .contentTooLarge, code: "content_too_large", detail: "The body is longer than the \(limit) bytes allowed.")
    case .truncated:
      Problem(.badRequest, code: "truncated_body", detail: "The body ended before its declared end.")
    case .malformed(let fault):
      Problem(.badRequest, code: "malformed_body", detail: "The chunked body is malformed: \(fault.rawValue).")
    case .timedOut:
      Problem(.requestTimeout, code: "request_timeout", detail: "The body did not arrive in time.")
    }
  }
}

/// Where a body's bytes come from: a connection, or memory.
protocol BodySource: AnyObject, Sendable {
  func readBody() async throws(RequestBodyError) -> [UInt8]?
}

/// The content of a request, read piece by piece.
///
/// While nobody reads, the socket isn't read either: a slow disk slows the client down, not the memory up. One reader
/// at a time.
package final class RequestBody: Sendable {
  /// The bytes announced: 0 where there is no body, nil where it is chunked.
  package let declaredLength: Int64?

  private struct Progress {
    var limit = Int64.max
    var received: Int64 = 0
  }
  private let progress = Mutex(Progress())
  private let source: (any BodySource)?

  init(declaredLength: Int64?, source: (any BodySource)?) {
    self.declaredLength = declaredLength
    self.source = source
  }

  /// A body that is already in memory.
  package convenience init(_ bytes: [UInt8]) {
    self.init(declaredLength: Int64(bytes.count), source: MemoryBodySource(bytes))
  }

  /// No body.
  package static let none = RequestBody(declaredLength: 0, source: nil)

  /// Bytes read so far.
  package var receivedLength: Int64 { progress.withLock { $0.received } }

  /// Sets the most that may be read. Past it `read` throws `.tooLarge`; where the declared length is past it already,
  /// the first `read` does, and no "100 Continue" is sent.
  package func limit(to bytes: Int64) {
    guard source != nil else { return }
    progress.withLock { $0.limit = bytes }
  }

  /// The next piece, at most 64 KiB and never empty; nil at the end. The first read sends "100 Continue" where the
  /// client waits for it.
  package func read() async throws(RequestBodyError) -> [UInt8]? {
    guard let source else { return nil }
    let limit = progress.withLock { $0.limit }
    if let declaredLength, declaredLength > limit { throw .tooLarge(limit: limit) }
    guard let piece = try await source.readBody() else { return nil }
    let received = progress.withLock { progress in
      progress.received += Int64(piece.count)
      return progress.received
    }
    guard received <= limit else { throw .tooLarge(limit: limit) }
    return piece
  }

  /// The whole body, which must not be longer than `limit` bytes.
  package func collect(upTo limit: Int) async throws(RequestBodyError) -> [UInt8] {
    if let declaredLength, declaredLength > Int64(limit) { throw .tooLarge(limit: Int64(limit)) }
    var bytes: [UInt8] = []
    while let piece = try await read() {
      guard bytes.count + piece.count <= limit else { throw .tooLarge(limit: Int64(limit)) }
      bytes.append(contentsOf: piece)
    }
    return bytes
  }
}

/// A body in memory, in pieces as a connection would give them.
private final class MemoryBodySource: BodySource {
  private let rest: Mutex<ArraySlice<UInt8>>

  init(_ bytes: [UInt8]) {
    rest = Mutex(bytes[...])
  }

  func readBody() async throws(RequestBodyError) -> [UInt8]? {
    rest.withLock { rest in
      guard !rest.isEmpty else { return nil }
      let piece = Array(rest.prefix(64 * 1024))
      rest = rest.dropFirst(piece.count)
      return piece
    }
  }
}
