/// What the server allows a client, each a setting. The defaults are those that a service on the open net needs.
package struct HTTPLimits: Sendable {
  /// Bytes of a request line; past it 414.
  package var requestLineBytes = 8 * 1024
  /// Bytes of a header section; past it 431.
  package var headBytes = 16 * 1024
  /// Fields of a header section; past it 431.
  package var fieldCount = 100
  /// Time for the whole head, from its first byte; past it 408.
  package var headSeconds = 10.0
  /// Longest wait for the next bytes of a body; past it the body fails with `.timedOut`.
  package var bodyGapSeconds = 30.0
  /// Slowest mean rate of a body once `bodyRateGraceSeconds` have been spent waiting for it.
  package var bodyBytesPerSecond = 1024.0
  /// How long a body may be slower than that.
  package var bodyRateGraceSeconds = 30.0
  /// Longest stall of a client that should read; past it the connection is reset.
  package var writeStallSeconds = 30.0
  /// Slowest mean rate at which a client may take an answer once `writeRateGraceSeconds` have been spent waiting for
  /// it.
  package var writeBytesPerSecond = 1024.0
  /// How long an answer may be taken more slowly than that.
  package var writeRateGraceSeconds = 30.0
  /// How long a connection may lie idle between requests.
  package var idleSeconds = 60.0
  /// Bytes of trailers behind a chunked body.
  package var trailerBytes = 8 * 1024
  /// Bytes of extensions on one chunk.
  package var chunkExtensionBytes = 256
  /// An unread rest of a body up to this size is read and dropped so that the connection can be kept.
  package var unreadBodyBytes: Int64 = 64 * 1024
  /// After an early answer: how long input is still read and dropped, so that a client that sends its whole body before
  /// it reads gets the answer.
  package var lingerSeconds = 30.0
  /// How long such a client may send nothing.
  package var lingerGapSeconds = 5.0
  /// How much is read and dropped.
  package var lingerBytes: Int64 = 512 * 1024 * 1024
  /// Open connections; past it 503. Never more than the process's descriptor limit less 64.
  package var connectionCount = 8192
  /// Open connections of one client; past it 429. nil: a quarter of all, but at least 16.
  package var connectionCountPerClient: Int?
  /// Bytes of one read from a socket.
  package var readBytes = 64 * 1024
  /// Bytes of a streamed response waiting for the client before its producer is made to wait; a piece of the stream may
  /// come on top. The kernel holds up to some megabytes more.
  package var queuedBytes = 32 * 1024
  /// Connections that the kernel holds for `accept`.
  package var backlog: Int32 = 1024

  /// The defaults.
  package init() {}
}
