import Foundation
import Testing

@testable import Sounds

/// A worker or an ffmpeg that was taken over can't exhaust the machine.
@Suite(.serialized) struct TakenOverTests {
  @Test(
    "a worker that was taken over starts no thread and makes no file",
    arguments: [("many-threads", EPERM), ("many-files", EACCES), ("full-files", EACCES)])
  func worker(_ deed: String, _ refusal: Int32) throws {
    var record = FaultRecord("a worker that was taken over: 5,000 threads, 20,000 files, eight full files")
    defer { record.write() }
    record.attempt(deed) {
      let folder = try TemporaryFolder()
      let (source, work) = (folder.file("source"), folder.file("work"))
      try write([1], to: source)
      try FileManager.default.createDirectory(atPath: work, withIntermediateDirectories: false)
      let finished = try Command(try Program.fenced(), ["67108864", "5", "1048576", source, work, deed]).finish()
      let names = try FileManager.default.contentsOfDirectory(atPath: work)
      return (finished.lines == ["\(refusal)"] ? [] : ["\(finished.status) \(finished.lines)"])
        + (names == ["output"] ? [] : ["\(names.count) files"])
    }
  }

  /// Under root, the user that ffmpeg runs as may have only 512, and the tests' other programs need some of them.
  private static let threads = ProcessInfo.processInfo.environment["FAULT_TABLE"] == nil ? 300 : 5000

  @Test(
    "a program in ffmpeg's place that starts threads is ended, and others' work goes on",
    arguments: HostileProgram.User.available)
  func threads(_ user: HostileProgram.User) throws {
    var record = FaultRecord("a hostile ffmpeg that starts \(Self.threads) threads, as \(user.rawValue)")
    defer { record.write() }
    let hostile = try HostileProgram(user: user)
    record.attempt {
      let file = HostileProgram.file("threads=\(Self.threads)\n")
      let answer = try hostile.server.client.send("POST", "/v1/recordings?name=a.m4a", [:], .bytes(file))
      // The file is at fault if both probes end so.
      var losses = [415, 503].contains(answer.status) ? [] : ["status \(answer.status): \(answer.text)"]
      if !eventually({ hostile.processes().isEmpty }) { losses.append("the program runs on") }
      _ = try hostile.server.client.uploadReady(Clip.tone.bytes)
      return losses + (try hostile.losses())
    }
  }
}
