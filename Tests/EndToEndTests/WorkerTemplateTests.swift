import Foundation
import Testing

@testable import Sounds

/// Workers are copies of one process, the template.
struct WorkerTemplateTests {
  /// Where the program's code begins in a process's memory; different in each process that starts the program.
  private func address(in process: pid_t) throws -> Substring? {
    String(decoding: try contents("/proc/\(process)/maps"), as: UTF8.self).split(separator: "-").first
  }

  @Test(
    "a worker is a copy of the template, and a child of the service",
    .enabled(if: geteuid() == 0, "only root sees a worker's memory"))
  func copies() throws {
    let server = try TestServer()
    let template = try #require(server.template())
    let source = try #require(try server.client.uploadReady(LongClip.wave())["id"].string)
    let job = try #require(try server.client.denoise(source, #"{"noise":{"start":1,"end":3}}"#)["id"].string)
    var worker: pid_t?
    let isFound = eventually {
      worker = server.workers().first { Processes.commandLine(of: $0).contains("worker denoise \(server.data)") }
      return worker != nil
    }
    try #require(isFound)
    #expect(try address(in: worker ?? 0) == address(in: template))
    #expect(try address(in: worker ?? 0) != address(in: server.processID))
    _ = try server.client.follow(job)
    #expect(server.template() == template)
    try server.stop()
    #expect(eventually { Processes.commandLine(of: template).isEmpty })
  }

  @Test("without the template, workers start the program, and soon there is another")
  func replacement() throws {
    let server = try TestServer()
    let template = try #require(server.template())
    kill(template, SIGKILL)
    _ = try server.client.uploadReady(Clip.tone.bytes)
    let isReplaced = try eventually {
      _ = try server.client.uploadReady(Clip.tone.bytes)
      return server.template().map { $0 != template } ?? false
    }
    #expect(isReplaced)
    #expect(eventually { !Processes.children(of: server.processID).contains(template) }, "it has been reaped")
  }

  @Test("a template that hangs delays a worker, and is replaced")
  func hanging() throws {
    let server = try TestServer()
    let template = try #require(server.template())
    _ = try server.client.uploadReady(Clip.tone.bytes)
    kill(template, SIGSTOP)
    _ = try server.client.uploadReady(Clip.tone.bytes)
    #expect(server.template() != template)
  }

  @Test("a template is replaced after a worker has crashed")
  func crash() throws {
    let server = try TestServer()
    server.losesWorkers = true
    let template = try #require(server.template())
    let source = try #require(try server.client.uploadReady(LongClip.wave())["id"].string)
    let job = try #require(try server.client.denoise(source, #"{"noise":{"start":1,"end":3}}"#)["id"].string)
    let isCrashed = eventually {
      guard let worker = server.workers().first(where: { Processes.commandLine(of: $0).contains(job) }) else {
        return false
      }
      kill(worker, SIGSEGV)
      return true
    }
    try #require(isCrashed)
    // The second attempt succeeds.
    try server.client.succeed(job)
    let isReplaced = try eventually {
      _ = try server.client.uploadReady(Clip.tone.bytes)
      return server.template().map { $0 != template } ?? false
    }
    #expect(isReplaced)
  }
}
