import PresentRows
import Storage
import Testing

@testable import Webhooks

@Suite struct WebhookQueueTests {
  private func delivery(to host: String) throws -> WebhookQueue.Delivery {
    try #require(WebhookQueue.Delivery(Webhook(job: JobID(), url: "http://\(host)/hook", notBefore: .now)))
  }

  /// A queue in which the jobs of these hosts' webhooks have ended, in this order.
  private func queue(_ hosts: [String]) throws -> WebhookQueue {
    var queue = WebhookQueue()
    for host in hosts {
      let next = try delivery(to: host)
      queue.expect(next)
      let isDue = queue.jobEnded(next.webhook.job)
      #expect(isDue)
    }
    return queue
  }

  /// Begins as many deliveries as allowed.
  private func fill(_ queue: inout WebhookQueue) -> [WebhookQueue.Delivery] {
    var begun: [WebhookQueue.Delivery] = []
    while let next = queue.begin() { begun.append(next) }
    return begun
  }

  @Test func atMostTwoCallsGoToOneHost() throws {
    var queue = try queue(["a.example", "a.example", "a.example", "b.example", "a.example:81"])
    let begun = fill(&queue)
    #expect(begun.map(\.address.authority) == ["a.example:80", "a.example:80", "b.example:80", "a.example:81"])

    // The waiting delivery can only use the place of a call to the same host.
    queue.end(begun[2])
    let afterAnother = fill(&queue)
    #expect(afterAnother.isEmpty)
    queue.end(begun[0])
    let afterItsHost = fill(&queue)
    #expect(afterItsHost.map(\.address.authority) == ["a.example:80"] && queue.runningCount == 3)
  }

  @Test func atMostEightCallsRunAtOnce() throws {
    var queue = try queue((0..<9).map { "host\($0).example" })
    let begun = fill(&queue)
    #expect(begun.count == 8)
    queue.end(begun[3])
    let next = fill(&queue)
    #expect(next.map(\.address.authority) == ["host8.example:80"])
  }

  @Test func waitingWebhooksAreSentWhenTheirJobOrPauseEnds() throws {
    var queue = WebhookQueue()
    let (one, other) = (try delivery(to: "a.example"), try delivery(to: "a.example"))
    queue.expect(one)
    queue.pause(other)
    let wrong = [
      queue.jobEnded(other.webhook.job), queue.pauseEnded(one.webhook.job), queue.jobEnded(JobID()),
    ]
    #expect(wrong == [false, false, false])
    let isDue = [queue.pauseEnded(other.webhook.job), queue.jobEnded(one.webhook.job)]
    #expect(isDue == [true, true])
    let isDueAgain = [queue.pauseEnded(other.webhook.job), queue.jobEnded(one.webhook.job)]
    #expect(isDueAgain == [false, false])
    let begun = fill(&queue)
    #expect(begun.map(\.webhook) == [other.webhook, one.webhook])
  }

  @Test func aURLThatWasChangedByHandIsLeftAlone() {
    #expect(WebhookQueue.Delivery(Webhook(job: JobID(), url: "ftp://a.example/", notBefore: .now)) == nil)
  }
}
