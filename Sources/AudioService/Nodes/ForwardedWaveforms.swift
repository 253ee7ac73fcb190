import HTTP
import Jobs
import S3Storage
import Storage
import Synchronization

/// Has the requests for a waveform that a job on another node writes answered by that node. If that fails, they are
/// answered here, with the progress that is known and without points. Thread-safe.
final class ForwardedWaveforms: Sendable {
  private let secret: NodeSecret
  private let live: LiveJobs
  private let log: ServiceLog
  /// The present by the catalog's clock.
  private let time: @Sendable () -> Timestamp
  private let client = NodeClient(connectSeconds: 1, seconds: 5, answerLimit: 8 << 20)
  private let threads = StoreQueue(threads: threadCount, waitingLimit: 100)
  /// The nodes that didn't answer, and until when they aren't asked again.
  private let silent = Mutex<[String: Timestamp]>([:])

  /// The number of requests that were forwarded, by outcome.
  let (successes, failures) = (Counter(), Counter())

  /// The maximum number of connections to other nodes.
  static let threadCount = 8
  /// How long a node that didn't answer isn't asked again.
  private static let pauseSeconds = 5.0
  /// The fields of an answer that are passed on.
  private static let answerFields = [
    "Content-Type", "Cache-Control", "Content-Security-Policy", "ETag", "Vary", "Stillwave-Available-Frames",
    "Stillwave-Columns", "Stillwave-Complete", "Stillwave-Estimated-Frames", "Stillwave-Scale", "Stillwave-Start-Frame",
    "Stillwave-Total-Frames",
  ]

  init(secret: NodeSecret, live: LiveJobs, log: ServiceLog, time: @escaping @Sendable () -> Timestamp) {
    (self.secret, self.live, self.log, self.time) = (secret, live, log, time)
  }

  /// Returns the route, changed to forward requests for what another node writes. It keeps other routes as they are.
  func forwarding(_ route: ServiceRoute) -> ServiceRoute {
    guard route.showsWaveform else { return route }
    return route.wrapping { handler in
      { [self] request, parameters, caller in
        guard let id = RecordingID(parameters["id"]), let job = live.job(writing: id), job.tenant == caller.tenant,
          let address = job.address, mayAsk(address)
        else { return try handler(request, parameters, caller) }
        let target = "/v1/recordings/\(id)/\(request.target.segments.last ?? "")" + request.target.query.queryText
        let accept = request.fields["Accept"]
        return .later {
          if let response = await self.response(of: address, to: target, accept: accept) { return response }
          return try await handler(request, parameters, caller).response
        }
      }
    }
  }

  private func mayAsk(_ address: String) -> Bool {
    silent.withLock { silent in
      guard let until = silent[address] else { return true }
      return until <= time()
    }
  }

  /// Returns another node's answer; nil unless its status is 200.
  private func response(of address: String, to target: String, accept: String?) async -> HTTPResponse? {
    do {
      guard ListeningAddress.canBeCalled(address) else { throw S3Error.unreachable(reason: "that is no address") }
      var fields = [(name: "Authorization", value: secret.authorization(.get, target, at: time()))]
      if let accept { fields.append((name: "Accept", value: accept)) }
      let answer = try await threads.run { [client, fields] in
        try client.get("http://\(address)\(target)", fields: fields)
      }
      successes.add(1)
      if silent.withLock({ $0.removeValue(forKey: address) }) != nil {
        log.notice("another node answers again", ["address": address])
      }
      return HTTPResponse(
        .ok,
        fields: Self.answerFields.reduce(into: [:]) { $0[$1] = answer.fields[$1.lowercased()] },
        body: .bytes(answer.content))
    } catch S3Error.refused(let status, _, _) where status != 403 {
      // The job may have ended meanwhile, or the request is one that is refused here, too.
      return nil
    } catch {
      failures.add(1)
      let isNews = silent.withLock { $0.updateValue(time() + Self.pauseSeconds, forKey: address) } == nil
      if isNews {
        log.failure(
          "a waveform that another node builds can't be shown", ["address": address, "reason": Self.reason(error)])
      }
      return nil
    }
  }

  private static func reason(_ error: any Error) -> String {
    if case S3Error.refused(403, _, _) = error {
      return "it answered 403: the nodes have different files for --cluster-secret-file"
    }
    return logText(error)
  }
}

extension ServiceRoute {
  /// Whether it shows a waveform or a spectrogram, as far as the recording has been read.
  var showsWaveform: Bool {
    let forms =
      ["", ".dat", ".json", ".points", ".png", ".svg"].map { "waveform" + $0 }
      + ["peaks.json", "spectrogram", "spectrogram.png"]
    return method == .get && forms.contains { pattern == "/v1/recordings/{id}/\($0)" }
  }
}
