import PresentRows
import Testing

@testable import Storage

@Suite(.onEveryEngine) struct WebhookCatalogTests {
  @Test("a webhook is read with its job, due once that has finished, until it is removed")
  func life() throws {
    let folder = try TemporaryFolder()
    let catalog = try Catalog(at: folder("catalog.sqlite"))
    let recording = sample()
    let job = Job(kind: .denoise, recording: recording.id)
    var webhook = Webhook(job: job.id, url: "https://a.example/?b=ä", notBefore: .now)
    try catalog.insert(recording, jobs: [job], webhooks: [webhook])
    var found = try catalog.webhooks()
    #expect(found.map(\.webhook) == [webhook] && found.map(\.isDue) == [false])

    try catalog.update(job.id) { $0.state = .failed }
    webhook.attempts = 3
    webhook.notBefore = Timestamp(milliseconds: 1_795_233_906_789)
    try catalog.update(webhook)
    found = try Catalog(at: folder("catalog.sqlite")).webhooks()
    #expect(found.map(\.webhook) == [webhook] && found.map(\.isDue) == [true])

    try catalog.removeWebhook(of: job.id)
    try catalog.update(webhook)
    #expect(try catalog.webhooks().isEmpty)
  }

  @Test("a recording that can't be inserted leaves no webhook")
  func allOrNone() throws {
    let folder = try TemporaryFolder()
    let catalog = try Catalog(at: folder("catalog.sqlite"))
    let orphan = Job(kind: .denoise, recording: RecordingID())
    #expect(throws: StorageError.noSuchRecording(orphan.recording)) {
      try catalog.insert(
        sample(), jobs: [orphan], webhooks: [Webhook(job: orphan.id, url: "https://a.example/", notBefore: .now)])
    }
    #expect(try catalog.webhooks().isEmpty)
  }
}
