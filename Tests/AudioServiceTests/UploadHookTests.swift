import Foundation
import HTTP
import Receivers
import Storage
import Testing
import Webhooks

@testable import AudioService

@Suite struct UploadHookTests {
  private func bench(_ receiver: WebhookReceiver) throws -> KeyedBench {
    try KeyedBench {
      $0.webhooks.secret = WebhookSecret("a secret of sixteen characters")
      $0.hookURL = receiver.url
    }
  }

  @Test func anUploadIsAcceptedOnlyIfTheOperatorsServiceAcceptsIt() async throws {
    let receiver = try WebhookReceiver(.answers(200), .answers(403), .answers(204), .answers(404))
    let keyed = try bench(receiver)
    #expect(try await keyed.status(.post, "/v1/recordings?name=talk.wav", body: "RIFF") == 201)
    let refused = try await keyed.respond(.post, "/v1/recordings", body: "RIFF")
    #expect(refused.status == .forbidden)
    #expect(String(decoding: try await refused.body.collect(), as: UTF8.self).contains("\"hook_refused\""))
    let fields: HTTPFields = ["Upload-Length": "8", "Upload-Metadata": "filename YS53YXY="]
    #expect(try await keyed.status(.post, "/v1/uploads", fields: fields) == 201)
    #expect(try await keyed.status(.post, "/v1/uploads", fields: fields) == 403)
    #expect(try keyed.bench.catalog.recordings(limit: 9).count == 1)
    let bodies = try receiver.received.map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.body)) as? [String: Any])
    }
    #expect(bodies.count == 4 && receiver.received.allSatisfy { $0.signature?.hasPrefix("t=") == true })
    #expect(bodies[0]["tenant"] as? String == "ours" && bodies[0]["key"] as? String == "ours")
    #expect(bodies[0]["name"] as? String == "talk.wav" && bodies[0]["bytes"] as? Int == 4)
    #expect(bodies[0]["kind"] as? String == "file" && bodies[2]["kind"] as? String == "resumable")
    #expect(bodies[2]["name"] as? String == "a.wav" && bodies[2]["bytes"] as? Int == 8)
    await receiver.stop()
    await keyed.bench.runner.stop()
  }

  @Test func aServiceThatDecidesNothingAcceptsNothing() async throws {
    let other = try WebhookReceiver()
    let receiver = try WebhookReceiver(.redirects(other.url), .answers(500))
    let keyed = try bench(receiver)
    for _ in 0..<2 { #expect(try await keyed.status(.post, "/v1/recordings", body: "RIFF") == 503) }
    await receiver.stop()
    // Nothing listens there any more.
    #expect(try await keyed.status(.post, "/v1/recordings", body: "RIFF") == 503)
    #expect(other.received.isEmpty)
    #expect(try keyed.bench.catalog.recordings(limit: 9).isEmpty)
    await other.stop()
  }

  @Test("a service that doesn't answer in time, or not all of it, accepts nothing", arguments: [false, true])
  func late(trickles: Bool) async throws {
    let receiver = try WebhookReceiver(trickles ? .trickles : .staysSilent)
    let keyed = try KeyedBench {
      $0.webhooks.secret = WebhookSecret("a secret of sixteen characters")
      $0.hookURL = receiver.url
      $0.hookTimeoutSeconds = 0.2
    }
    #expect(try await keyed.status(.post, "/v1/recordings", body: "RIFF") == 503)
    await receiver.stop()
  }

  @Test func anAnswerWithoutEndIsReadOnlyInPart() async throws {
    let receiver = try WebhookReceiver(.answersWithoutEnd)
    let keyed = try bench(receiver)
    #expect(try await keyed.status(.post, "/v1/recordings", body: "RIFF") == 201)
    await receiver.stop()
    await keyed.bench.runner.stop()
  }
}
