// A node's port for the other nodes. It serves one thing, to nodes that have the cluster's secret (NodeSecret):
//
//   GET /internal/jobs/{job}/{attempt}-{nonce}/pyramid     the waveform that an attempt on this node writes, with Range
//
// Any other request gets 403 without content, or 404 if it is signed. Answers with a range have a proof (NodeSecret).

import HTTP
import Jobs
import Storage

/// Serves the waveforms that jobs on this node write to the other nodes.
struct NodeServer: Sendable {
  private let server: HTTPServer
  private let settings: NodeSettings

  /// The maximum number of connections.
  static let connectionLimit = 256

  /// Returns nil if no other node is to reach this one.
  init?(_ context: Context) {
    let cluster = context.configuration.cluster
    guard let secret = cluster.nodes.secret, let listen = cluster.nodes.listen, cluster.role.runsJobs else {
      return nil
    }
    settings = cluster.nodes
    var http = HTTPServerConfiguration()
    (http.host, http.port, http.loopCount) = (listen.host, listen.port, 1)
    http.limits.connectionCount = Self.connectionLimit
    http.refusal = { problem, _ in HTTPResponse(problem.status) }
    server = HTTPServer(http, responder: GrowingFiles(secret: secret, context: context))
  }

  /// Starts to listen. Returns the address by which other nodes find it, `HOST:PORT`, and whether it is one that only
  /// this machine can reach. Throws `HTTPServerError`.
  func start() throws(HTTPServerError) -> (address: String, isLocal: Bool)? {
    let bound = try server.start()
    guard let address = settings.announced(port: bound.port) else { return nil }
    // A name may stand for an address of this machine.
    return (address, NodeSettings.isLocal(settings.address?.host ?? bound.host))
  }

  /// Stops, and ends what hasn't been sent after a second.
  func stop() async { await server.stop(within: 1) }
}

/// What the port of the other nodes serves.
struct GrowingFiles: HTTPResponder {
  let secret: NodeSecret
  let context: Context

  /// The longest range that is proven, in bytes: more than a node asks for.
  private static let provenBytes: Int64 = 8 << 20

  /// The path of the file that an attempt writes.
  static func path(of token: AttemptToken) -> String { "/internal/jobs/\(token.job)/\(token.shortName)/pyramid" }

  func respond(to request: HTTPRequest) -> HTTPAnswer {
    guard secret.permits(request, at: context.time) else { return .now(HTTPResponse(.forbidden)) }
    let segments = request.target.segments
    guard request.method == .get, segments.count == 5, let job = JobID(segments[2]),
      let live = context.runner.live[job], live.address == nil, let token = live.writer,
      request.target.path == Self.path(of: token)
    else { return .now(HTTPResponse(.notFound)) }
    return .later {
      let file: FileContent?
      do { file = try await context.work.run { try self.file(of: token, live) } } catch {
        context.log.failure(
          "a growing waveform can't be sent to another node", ["job": token.job.text, "error": logText(error)])
        return HTTPResponse(.serviceUnavailable)
      }
      guard let file else { return HTTPResponse(.notFound) }
      let response = HTTPResponse(
        Representation(
          body: .file(file), contentType: "application/octet-stream", etag: nil, cacheControl: "no-store",
          acceptsRanges: true), for: request)
      return try await proven(response, to: request)
    }
  }

  /// Adds the proof of an answer with a range that a node may want. Reads it into memory.
  private func proven(_ response: HTTPResponse, to request: HTTPRequest) async throws -> HTTPResponse {
    guard response.status == .partialContent, let range = response.fields["Content-Range"],
      case .file(let part) = response.body, part.length <= Self.provenBytes
    else { return response }
    let content = try await context.work.run { () throws(FileContentError) in try part.read(0..<part.length) }
    var proven = response
    proven.body = .bytes(content)
    proven.fields[NodeSecret.answerField] = secret.proof(
      ofAnswer: content, range: range, to: request.target.path, request.fields["Authorization"] ?? "")
    return proven
  }

  /// Opens the file that an attempt writes, under its temporary or its final name. Blocks.
  private func file(of token: AttemptToken, _ job: LiveJob) throws -> FileContent? {
    if let local = try context.growingWaveforms.growingWaveform(of: token), let file = try? open(local) { return file }
    return try job.recording.flatMap { context.blobs.fileAtHand(token.waveformKey(of: $0)) }.map(open)
  }

  private func open(_ local: LocalFile) throws(FileContentError) -> FileContent {
    try local.withPath { path throws(FileContentError) in try FileContent(path: path) }
  }
}
