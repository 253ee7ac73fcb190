import Foundation
import Testing

/// The settings of webhooks, tried on the real program.
struct WebhookSettingsTests {
  private static let secret = "a secret of sixteen characters and more"

  @Test func noWorkerInheritsTheSecretAndNoLineShowsIt() throws {
    let folder = try TemporaryFolder()
    let command = try Command(
      "/usr/bin/env",
      [
        "STILLWAVE_WEBHOOK_SECRET=\(Self.secret)", try Program.path(), "serve", "--listen", "127.0.0.1:0", "--data",
        folder.file("data"), "--webhook-networks", "127.0.0.0/8", "--log-level", "trace",
      ])
    defer { command.signal(SIGKILL) }
    #expect(try eventually { try command.output().hasSuffix("\n") })
    // The kernel shows the environment that the process started with, also for a child that hasn't executed another
    // program yet.
    let own = try? contents("/proc/\(command.processID)/environ")
    #expect(geteuid() == 0 ? own?.isEmpty == false : own == nil)
    #expect(!String(decoding: own ?? [], as: UTF8.self).contains(Self.secret))
    let port = try #require(UInt16(try command.output().split(separator: ":").last?.dropLast() ?? ""))
    let client = HTTPClient(port: port)
    let source = try #require(try client.uploadReady(LongClip.wave())["id"].string)
    let job = try client.denoise(
      source, #"{"noise":{"start":1,"end":3},"callback_url":"http://127.0.0.1:\#(port)/healthz"}"#)
    // A worker's environment is also closed to other users.
    if geteuid() == 0 {
      var environment: [UInt8] = []
      let found = eventually {
        for worker in Processes.children(of: command.processID) {
          environment = (try? contents("/proc/\(worker)/environ")) ?? []
          if !environment.isEmpty { return true }
        }
        return false
      }
      #expect(found)
      #expect(!String(decoding: environment, as: UTF8.self).contains(Self.secret))
    }
    // The receiver here doesn't accept POST: the attempt is logged, without the secret.
    try client.succeed(try #require(job["id"].string))
    let errors = { String(decoding: try contents(command.folder.file("errors")), as: UTF8.self) }
    #expect(try eventually { try errors().contains("a webhook is tried again later") })
    command.signal(SIGTERM)
    let finished = try command.finish()
    #expect(finished.status == 0 && !finished.errors.contains(Self.secret))
  }

  @Test func withoutLibcurlTheServiceRunsButSendsNoWebhooks() throws {
    let folder = try TemporaryFolder()
    // A file that the loader finds first but can't load.
    try Data("no library".utf8).write(to: URL(filePath: folder.file("libcurl.so.4")))
    let words = ["LD_LIBRARY_PATH=\(folder.path)", try Program.path()]
    let plain = try Command(
      "/usr/bin/env", words + ["serve", "--listen", "127.0.0.1:0", "--data", folder.file("data")])
    #expect(try eventually { try plain.output().hasSuffix("\n") })
    plain.signal(SIGTERM)
    #expect(try plain.finish().status == 0)
    let calling = try Command(
      "/usr/bin/env",
      ["STILLWAVE_WEBHOOK_SECRET=\(Self.secret)"] + words + ["serve", "--data", folder.file("other")])
    let finished = try calling.finish()
    #expect(finished.status != 0 && finished.errors.contains("libcurl4"), "\(finished.errors)")
  }
}
