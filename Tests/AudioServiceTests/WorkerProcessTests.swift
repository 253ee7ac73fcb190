import Dispatch
import Foundation
import Glibc
import Processing
import Testing

@testable import AudioService
@testable import Jobs

/// Children started from a shell stand in for `stillwave`'s own.
@Suite struct WorkerProcessTests {
  private struct Life: Sendable {
    var codes: [String] = []
    var exit: WorkerExit?
  }

  /// Runs `script` to its end. `killed` kills it at its first report. `ended` is called at its end, even if the test
  /// itself is delayed.
  private func run(
    _ script: String, input: [UInt8] = [], on file: String = "", killed: Bool = false,
    ended: @escaping @Sendable () -> Void = {}
  ) async -> Life {
    let queue = DispatchQueue(label: "test")
    return await withCheckedContinuation { continuation in
      queue.async {
        let box = Box()
        box.worker = WorkerProcess.start(
          program: "/bin/sh", arguments: ["-c", script], input: input, files: [file], queue: queue,
          onReport: { report in
            box.life.codes.append(report.failure?.code ?? "")
            if killed { box.worker?.kill() }
          },
          onExit: { exit in
            box.life.exit = exit
            box.worker = nil
            ended()
            continuation.resume(returning: box.life)
          })
      }
    }
  }

  private final class Box: @unchecked Sendable {  // touched on the test's queue only
    var life = Life()
    var worker: WorkerProcess?
  }

  private static func line(_ code: String) -> String {
    #"echo '{"error":{"code":"\#(code)","detail":"","retry":false}}';"#
  }

  @Test("reports arrive in order, and the exit after the last")
  func reportsThenExit() async {
    let life = await run((0..<100).map { Self.line("\($0)") }.joined() + "exit 3")
    #expect(life.codes == (0..<100).map { "\($0)" })
    #expect(life.exit == .status(3))
  }

  @Test("a child's standard error is discarded, because it must not write to the service's log")
  func complaints() async {
    #expect(await run("[ $(readlink /proc/$$/fd/2) = /dev/null ] || exit 3; echo oops >&2").exit == .status(0))
  }

  @Test("standard input begins with the request, and stays open")
  func request() async {
    let request = WorkerRequest(
      .probe, on: "/a file", fence: WorkerFence(memoryBytes: 1, processorSeconds: 2, outputBytes: 3))
    let line = String(decoding: request.line().dropLast(), as: UTF8.self)
    let script = "read -r line; [ \"$line\" = '\(line)' ] || exit 3; "
    #expect(await run(script, input: request.line()).exit == .status(0))
    // What it reads next never comes, until it is killed.
    let life = await run(script + Self.line("begun") + "read -r line; exit 4", input: request.line(), killed: true)
    #expect(life.codes == ["begun"] && life.exit == .signal(9))
  }

  @Test("a request that a pipe doesn't hold starts no child")
  func longRequest() async {
    let full = [UInt8](repeating: 0x20, count: WorkerRequest.sizeLimit)
    #expect(await run("exit 0", input: full).exit == .status(0))
    #expect(await run("exit 0", input: full + [0x0A]).exit == .notStarted(errno: EAGAIN))
  }

  @Test("a child that is killed ends by the signal")
  func killing() async {
    let life = await run(Self.line("begun") + "exec sleep 1000", killed: true)
    #expect(life.codes == ["begun"])
    #expect(life.exit == .signal(9))
  }

  @Test("a child that closes its output but keeps running is killed")
  func closedOutput() async {
    #expect(await run("exec >&-; read line; exit 4").exit == .signal(9))
  }

  @Test("a child that writes an endless line is killed")
  func endlessLine() async {
    #expect(await run("exec tr '\\0' x </dev/zero").exit == .signal(9))
  }

  @Test("a missing program has its own kind of exit")
  func missingProgram() async {
    let queue = DispatchQueue(label: "test")
    let exit = await withCheckedContinuation { continuation in
      queue.async {
        _ = WorkerProcess.start(
          program: "/nowhere/stillwave", template: nil, WorkerRequest(.probe, on: "/"), .request, queue: queue,
          onReport: { _ in }, onExit: { continuation.resume(returning: $0) })
      }
    }
    #expect(exit == .notStarted(errno: 2))
  }

  @Test(
    "a file that a killed child had lent to ffmpeg is taken back once it's no longer used",
    .enabled(if: geteuid() == 0, "only root lends"))
  func lentFile() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/audio.m4a"
    try Data("sound".utf8).write(to: URL(filePath: path))
    #expect(unsafe chown(path, 0, 65_533) == 0 && chmod(path, 0o640) == 0)
    @Sendable func mode() -> Int? {
      let attributes = try? FileManager.default.attributesOfItem(atPath: path)
      return attributes?[.posixPermissions] as? Int
    }
    // Like an ffmpeg that hasn't ended yet.
    let user = unsafe open(path, O_RDONLY | O_CLOEXEC)
    #expect(flock(user, LOCK_SH) == 0)
    // Taking it back is tried for a minute, and the test itself may not get a thread for that long.
    let life = await run("kill -KILL $$", on: path) {
      #expect(mode() == 0o640)
      close(user)
    }
    #expect(life.exit == .signal(9))
    try await TestBench(in: folder).eventually { mode() == 0o600 }
  }

  @Test("the service survives the ends of a hundred children")
  func manyEnds() async {
    // With a dispatch source for each child, about one end in ten crashed the process.
    let lives = await withTaskGroup(of: [Life].self, returning: [Life].self) { group in
      for _ in 0..<8 {
        group.addTask {
          var lives: [Life] = []
          for _ in 0..<15 { lives.append(await run(Self.line("done"))) }
          return lives
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    #expect(lives.count == 120)
    #expect(lives.allSatisfy { $0.codes == ["done"] && $0.exit == .status(0) })
  }
}
