import Synchronization

/// Why a body could not be read completely.
package enum RequestBodyError: Error, Equatable, Sendable {
  /// The body, or its declared length, exceeds the limit → 413.
  case tooLarge(limit: Int64)
  /// The client disconnected or shut down its half before the end → 400 if it still listens.
  case truncated
  /// The chunks are malformed → 400.
  case malformed(Fault)
  /// The client sent too slowly or not at all → 408.
  case timedOut

  /// What is wrong with the chunks.
  package enum Fault: String, Sendable {
    /// The size isn't 1 to 16 hexadecimal digits and CRLF, or overflows.
    case chunkSize = "chunk size"
    /// The extensions exceed the limit or violate the grammar.
    case chunkExtension = "chunk extension"
    /// The data is not followed by CRLF.
    case chunkEnd = "chunk end"
    /// The trailers exceed the limit or contain an invalid field.
    case trailer
  }
}

/// The source of a body's bytes: a connection or memory.
protocol BodySource: AnyObject, Sendable {
  func readBody() async throws(RequestBodyError) -> [UInt8]?
  /// Runs a task where `readBody` needs no change of threads.
  func start(_ reader: @escaping @Sendable () async -> Void)
}

/// The content of a request, read piece by piece.
///
/// The socket is read only while the handler reads, so a slow disk slows the client down instead of filling memory.
/// There can be only one reader at a time.
package final class RequestBody: Sendable {
  /// The declared length in bytes: 0 if there is no body, nil if it is chunked.
  package let declaredLength: Int64?

  private struct Progress {
    var limit = Int64.max
    var received: Int64 = 0
    var isAllowed: (@Sendable () -> Bool)?
  }
  private let progress = Mutex(Progress())
  private let source: (any BodySource)?

  init(declaredLength: Int64?, source: (any BodySource)?) {
    self.declaredLength = declaredLength
    self.source = source
  }

  /// Creates a body that is already in memory.
  package convenience init(_ bytes: [UInt8]) {
    self.init(declaredLength: Int64(bytes.count), source: MemoryBodySource(bytes))
  }

  /// No body.
  package static let none = RequestBody(declaredLength: 0, source: nil)

  /// Number of bytes read so far.
  package var receivedLength: Int64 { progress.withLock { $0.received } }

  /// Limits the number of bytes that may be read. Beyond it, `read` throws `.tooLarge`. If the declared length already
  /// exceeds it, the first `read` throws and no "100 Continue" is sent.
  package func limit(to bytes: Int64) {
    guard source != nil else { return }
    progress.withLock { $0.limit = bytes }
  }

  /// Ends reading when `condition` no longer holds: after each piece and at the end, `read` throws `.truncated` then,
  /// as if the client had disconnected.
  package func allowReading(while condition: @escaping @Sendable () -> Bool) {
    guard source != nil else { return }
    progress.withLock { $0.isAllowed = condition }
  }

  /// Returns the next piece, never empty, or nil at the end. The first read sends "100 Continue" if the client waits
  /// for it.
  ///
  /// A piece is what one read from the socket returned: at most `readBytes`, or 16 times as much (1 MiB by default) if
  /// the client sends faster than the handler reads.
  package func read() async throws(RequestBodyError) -> [UInt8]? {
    guard let source else { return nil }
    let limit = progress.withLock { $0.limit }
    if let declaredLength, declaredLength > limit { throw .tooLarge(limit: limit) }
    let piece = try await source.readBody()
    if let isAllowed = progress.withLock({ $0.isAllowed }), !isAllowed() { throw .truncated }
    guard let piece else { return nil }
    let received = progress.withLock { progress in
      progress.received += Int64(piece.count)
      return progress.received
    }
    guard received <= limit else { throw .tooLarge(limit: limit) }
    return piece
  }

  /// Runs `reader`, which reads this body, in a task of its own, beside the handler. Like the handler, it runs on the
  /// connection's loop and must not block.
  package func startReader(_ reader: @escaping @Sendable () async -> Void) {
    if let source { source.start(reader) } else { Task(operation: reader) }
  }

  /// Reads the whole body; throws `.tooLarge` if it exceeds `limit` bytes.
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

/// A body in memory, delivered in pieces like those of a connection.
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

  func start(_ reader: @escaping @Sendable () async -> Void) { Task(operation: reader) }
}
