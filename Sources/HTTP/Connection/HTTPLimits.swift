/// What the server allows clients. The defaults suit a service on the open internet.
package struct HTTPLimits: Sendable {
  /// Maximum size of a request line, in bytes; beyond it, 414.
  package var requestLineBytes = 8 * 1024
  /// Maximum size of a header section, in bytes; beyond it, 431.
  package var headBytes = 16 * 1024
  /// Maximum number of fields in a header section; beyond it, 431.
  package var fieldCount = 100
  /// Time for the whole head, from its first byte; beyond it, 408.
  package var headSeconds = 10.0
  /// Longest wait for the next bytes of a body; beyond it the body fails with `.timedOut`.
  package var bodyGapSeconds = 30.0
  /// Slowest mean rate of a body, once `bodyRateGraceSeconds` have been spent waiting for it.
  package var bodyBytesPerSecond = 1024.0
  /// How long a body may be slower than `bodyBytesPerSecond`.
  package var bodyRateGraceSeconds = 30.0
  /// How long a client that should read may stall; beyond it the connection is reset.
  package var writeStallSeconds = 30.0
  /// Slowest mean rate at which a client may read an answer, once `writeRateGraceSeconds` have been spent waiting.
  package var writeBytesPerSecond = 1024.0
  /// How long a client may read more slowly than `writeBytesPerSecond`.
  package var writeRateGraceSeconds = 30.0
  /// How long a connection may be idle between requests.
  package var idleSeconds = 60.0
  /// Maximum size of the trailers after a chunked body, in bytes.
  package var trailerBytes = 8 * 1024
  /// Maximum size of the extensions of one chunk, in bytes.
  package var chunkExtensionBytes = 256
  /// If no more than this is left unread of a body, it is read and discarded to keep the connection.
  package var unreadBodyBytes: Int64 = 64 * 1024
  /// After an early answer: how long to keep reading and discarding input, so that a client that sends its whole body
  /// before it reads still gets the answer.
  package var lingerSeconds = 30.0
  /// How long such a client may go without sending.
  package var lingerGapSeconds = 5.0
  /// Maximum number of bytes read and discarded.
  package var lingerBytes: Int64 = 512 * 1024 * 1024
  /// Maximum number of open connections; beyond it, 503. Never more than the process's descriptor limit less 64.
  package var connectionCount = 8192
  /// Maximum number of open connections per client; beyond it, 429. Nil: a quarter of all, but at least 16.
  package var connectionCountPerClient: Int?
  /// Maximum size of one read from a socket, in bytes. The content of a fast client is read 16 times as much at once.
  package var readBytes = 64 * 1024
  /// Bytes of a streamed response that may wait for the client before the producer must wait too; one more piece may
  /// come on top. The kernel buffers up to a few more megabytes.
  package var queuedBytes = 32 * 1024
  /// Length of the kernel's queue of connections for `accept`.
  package var backlog: Int32 = 1024

  /// Creates the default limits.
  package init() {}
}
