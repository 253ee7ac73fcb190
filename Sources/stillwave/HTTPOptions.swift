import ArgumentParser
import AudioService
import HTTP
import Webhooks

/// The settings of the HTTP server; see `HTTPLimits` for what each one means and what answer it leads to.
struct HTTPOptions: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp(
      "Names, by comma, that requests may be sent to; besides IP addresses and loopback names no others are served.",
      valueName: "NAMES"))
  var allowedHosts: String?

  @Option(
    help: ArgumentHelp(
      "Origins, by comma, whose pages may use the service from a browser: https://app.example.com, or * for any.",
      valueName: "ORIGINS"))
  var corsOrigin: String?

  @Option(
    help: ArgumentHelp(
      "Proxies, by comma, whose X-Forwarded-For says who asks, for example 127.0.0.1,10.0.0.0/8; by default none.",
      valueName: "NETWORKS"))
  var trustedProxies: String?

  @Option(
    help: ArgumentHelp(
      "The path below which a proxy serves the service, for example /audio; by default /.", valueName: "PATH"))
  var basePath: String?

  @Option(help: "Connections open at once; by default 8192, and at most the descriptor limit less 64.")
  var maxConnections: Int?

  @Option(help: "Of these, those of one client, past which it gets 429; by default a quarter, at least 16.")
  var maxConnectionsPerClient: Int?

  @Option(help: "Connections that wait to be accepted; by default 1024.")
  var backlog: Int32?

  @Option(help: "Bytes of a request line; by default 8192.")
  var maxRequestLineBytes: Int?

  @Option(help: "Bytes of a header section; by default 16384.")
  var maxHeadBytes: Int?

  @Option(help: "Fields of a header section; by default 100.")
  var maxHeadFields: Int?

  @Option(help: "Bytes of the extensions of one chunk; by default 256.")
  var maxChunkExtensionBytes: Int?

  @Option(help: "Bytes of the trailers behind a chunked body; by default 8192.")
  var maxTrailerBytes: Int?

  @Option(help: "Seconds for a whole head; by default 10.")
  var headTimeout: Double?

  @Option(help: "Seconds between two pieces of a body; by default 30.")
  var bodyTimeout: Double?

  @Option(help: "Bytes a second that a body must come at; by default 1024.")
  var minBodyRate: Double?

  @Option(help: "Seconds for which a body may come more slowly; by default 30.")
  var bodyRateGrace: Double?

  @Option(help: "Seconds for which a client may read nothing of its answer; by default 30.")
  var writeTimeout: Double?

  @Option(help: "Bytes a second that an answer must be taken at; by default 1024.")
  var minWriteRate: Double?

  @Option(help: "Seconds for which an answer may be taken more slowly; by default 30.")
  var writeRateGrace: Double?

  @Option(help: "Seconds between two requests of a connection; by default 60.")
  var idleTimeout: Double?

  @Option(help: "Seconds for which a refused body is still read, so that its client sees the answer; by default 30.")
  var lingerTimeout: Double?

  @Option(help: "Seconds for which the client of a refused body may send nothing; by default 5.")
  var lingerGap: Double?

  @Option(help: "Bytes of a refused body that are still read; by default 512 MiB.")
  var lingerBytes: Int64?

  @Option(help: "Bytes of an unread body that are read to keep the connection; by default 65536.")
  var maxUnreadBytes: Int64?

  @Option(help: "Bytes of one read from a connection; by default 65536.")
  var readBytes: Int?

  @Option(help: "Bytes of a long answer that wait in memory for a slow client; by default 32768.")
  var writeQueueBytes: Int?

  func hosts() throws -> Set<String> {
    let names = try list("allowed-hosts", allowedHosts)
    for name in names where !HostGuard.isName(name) {
      throw ValidationError("--allowed-hosts takes names such as audio.example.com; “\(name)” is none.")
    }
    return Set(names)
  }

  func origins() throws -> AllowedOrigins {
    let texts = try list("cors-origin", corsOrigin)
    if texts == ["*"] { return .any }
    return .only(
      Set(
        try texts.map { text in
          guard let origin = Origin(text) else {
            throw ValidationError(
              "--cors-origin takes origins such as https://app.example.com, or * alone; “\(text)” is neither.")
          }
          return origin
        }))
  }

  func proxies() throws -> [Network] {
    try list("trusted-proxies", trustedProxies).map { text in
      guard let network = Network(text) else {
        throw ValidationError("--trusted-proxies takes networks such as 10.0.0.0/8; “\(text)” is none.")
      }
      return network
    }
  }

  func base() throws -> BasePath {
    let text = try setting("base-path", basePath, default: "/")
    guard let base = BasePath(serviceAt: text) else {
      throw ValidationError(
        "--base-path is a path such as /audio, of letters, digits and -._~, that doesn't begin with one of the service's "
          + "own (/v1, /viewer …); it was “\(text)”.")
    }
    return base
  }

  func limits() throws -> HTTPLimits {
    var limits = HTTPLimits()
    limits.connectionCount = try positive("max-connections", maxConnections, default: limits.connectionCount)
    limits.connectionCountPerClient = try positive("max-connections-per-client", maxConnectionsPerClient)
    limits.backlog = try positive("backlog", backlog, default: limits.backlog)
    limits.requestLineBytes = try positive(
      "max-request-line-bytes", maxRequestLineBytes, default: limits.requestLineBytes)
    limits.headBytes = try positive("max-head-bytes", maxHeadBytes, default: limits.headBytes)
    limits.fieldCount = try positive("max-head-fields", maxHeadFields, default: limits.fieldCount)
    limits.chunkExtensionBytes = try positive(
      "max-chunk-extension-bytes", maxChunkExtensionBytes, default: limits.chunkExtensionBytes)
    limits.trailerBytes = try positive("max-trailer-bytes", maxTrailerBytes, default: limits.trailerBytes)
    limits.headSeconds = try positive("head-timeout", headTimeout, default: limits.headSeconds)
    limits.bodyGapSeconds = try positive("body-timeout", bodyTimeout, default: limits.bodyGapSeconds)
    limits.bodyBytesPerSecond = try positive("min-body-rate", minBodyRate, default: limits.bodyBytesPerSecond)
    limits.bodyRateGraceSeconds = try positive("body-rate-grace", bodyRateGrace, default: limits.bodyRateGraceSeconds)
    limits.writeStallSeconds = try positive("write-timeout", writeTimeout, default: limits.writeStallSeconds)
    limits.writeBytesPerSecond = try positive("min-write-rate", minWriteRate, default: limits.writeBytesPerSecond)
    limits.writeRateGraceSeconds = try positive(
      "write-rate-grace", writeRateGrace, default: limits.writeRateGraceSeconds)
    limits.idleSeconds = try positive("idle-timeout", idleTimeout, default: limits.idleSeconds)
    limits.lingerSeconds = try positive("linger-timeout", lingerTimeout, default: limits.lingerSeconds)
    limits.lingerGapSeconds = try positive("linger-gap", lingerGap, default: limits.lingerGapSeconds)
    limits.lingerBytes = try positive("linger-bytes", lingerBytes, default: limits.lingerBytes)
    limits.unreadBodyBytes = try positive("max-unread-bytes", maxUnreadBytes, default: limits.unreadBodyBytes)
    limits.readBytes = try positive("read-bytes", readBytes, default: limits.readBytes)
    limits.queuedBytes = try positive("write-queue-bytes", writeQueueBytes, default: limits.queuedBytes)
    return limits
  }
}
