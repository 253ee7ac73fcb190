// The question that --hook asks before an upload is accepted, POSTed like a webhook and signed like one:
//
//   {"event":"upload","kind":"file","tenant":"acme","key":"app","token":null,"name":"talk.wav","bytes":1234,
//    "content_type":"audio/wav","peer":"192.0.2.1:50312","request_id":"…"}
//
// `kind` is `file` for POST /v1/recordings and `resumable` for POST /v1/uploads; `bytes` is null if the client doesn't
// say how many there will be. Any 2xx accepts the upload, any 4xx refuses it. Everything else (no answer in time, a
// redirect, 5xx) refuses it too, for now: a service that can't be asked accepts nothing.

import HTTP
import Jobs
import Storage
import Webhooks

/// Asks the operator's own service before an upload is accepted.
final class UploadQuestions: Sendable {
  struct Question: Encodable {
    let event = "upload"
    var kind: String
    var tenant, key: String
    @Nullable var token: String?
    @Nullable var name: String?
    @Nullable var bytes: Int64?
    @Nullable var contentType: String?
    var peer: String
    var requestId: String
  }

  private let hook: UploadHook
  private let log: ServiceLog
  private let trustedProxies: [Network]
  /// Each question takes a thread.
  private let lane: FairLane

  /// nil if the settings name no service. `time` is the catalog's.
  init?(_ configuration: Configuration, log: ServiceLog, time: @escaping @Sendable () -> Timestamp) {
    guard let url = configuration.hookURL,
      let hook = UploadHook(
        url: url, configuration.webhooks, timeoutSeconds: configuration.hookTimeoutSeconds, time: time)
    else { return nil }
    lane = FairLane(
      configuration.clock, label: "hook", places: 16, perClient: 8,
      waiting: .init(name: "waiting_uploads", total: 256, perClient: 64))
    (self.hook, self.log, trustedProxies) = (hook, log, configuration.trustedProxies)
  }

  /// Asks about an upload. Throws `.hookRefuses` or `.hookFails` unless it is accepted.
  func ask(
    _ request: HTTPRequest, _ caller: Caller, kind: String, name: String?, bytes: Int64?
  ) async throws {
    let question = Question(
      kind: kind, tenant: caller.tenant.name, key: caller.grant.keyID, token: caller.grant.tokenID, name: name,
      bytes: bytes, contentType: request.fields["Content-Type"],
      peer: Client.address(of: request, trusting: trustedProxies),
      requestId: request.id)
    let content = try JSONDocument.encoded(question)
    switch try await lane.turn(of: caller.client, { await hook.ask(content) }) {
    case .accepted: return
    case .refused: throw ServiceError.hookRefuses
    case .failed(let reason):
      log.failure("the hook could not be asked about an upload", ["reason": reason, "request_id": request.id])
      throw ServiceError.hookFails
    }
  }
}
