import Foundation
import Testing

@testable import Sounds

/// Workers of the real program, seen from outside.
struct FenceTests {
  /// The fields of `/proc/…/status` of all threads of a process.
  private func threads(of process: pid_t) -> [[Substring: String]] {
    let folder = "/proc/\(process)/task"
    return ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).compactMap { thread in
      guard let text = try? String(contentsOfFile: folder + "/\(thread)/status", encoding: .utf8) else { return nil }
      return Dictionary(
        text.split(separator: "\n").map { line in
          let parts = line.split(separator: ":", maxSplits: 1)
          return (parts[0], parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : "")
        }, uniquingKeysWith: { $1 })
    }
  }

  @Test func everyThreadOfAWorkerIsInsideTheFence() throws {
    let server = try TestServer()
    let source = try #require(try server.client.uploadReady(LongClip.wave())["id"].string)
    let job = try #require(try server.client.denoise(source, #"{"noise":{"start":1,"end":3}}"#)["id"].string)
    var found: [[Substring: String]] = []
    // Its threads start just before it enters the filter of calls.
    let isFound = eventually {
      let worker = server.workers().first { Processes.commandLine(of: $0).contains(job) }
      found = worker.map(threads) ?? []
      return found.count > 1 && found.allSatisfy { $0["Seccomp"] == "2" }
    }
    try #require(isFound)
    for thread in found {
      #expect(thread["NoNewPrivs"] == "1" && thread["Seccomp"] == "2")
      for field in ["CapEff", "CapPrm"] { #expect(thread[Substring(field)] == "0000000000000000", "\(thread)") }
    }
    _ = try server.client.follow(job)
  }

  @Test func theMapOfALongFileIsStoredNextToIt() throws {
    let server = try TestServer()
    let (wave, coded) = (server.folder.file("a.wav"), server.folder.file("a.mp3"))
    try write(WAVFile.noise(seconds: 20, seed: 1), to: wave)
    try Tool.ffmpeg.run(["-v", "error", "-i", wave, coded])
    let id = try #require(try server.client.uploadReady(contents(coded))["id"].string)
    let names = try FileManager.default.contentsOfDirectory(atPath: server.data + "/recordings/\(id)").sorted()
    #expect(names.count == 4 && names.prefix(2) == ["audio.mp3", "audio.mp3.map"], "\(names)")
    #expect(try eventually { try server.leftovers().allSatisfy { $0.hasPrefix("recordings") } })
  }
}
