import Dispatch
import Foundation
import Glibc
import Processing
import Testing
import Workers

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
    _ script: String, input: [UInt8] = [], on file: String = "", killed: Bool = false, in folder: String? = nil,
    allowing allowance: WorkerAllowance? = nil, ended: @escaping @Sendable () -> Void = {}
  ) async -> Life {
    let (queue, watch) = (DispatchQueue(label: "test"), WorkerWatch(everySeconds: nil))
    return await withCheckedContinuation { continuation in
      queue.async {
        let box = Box()
        box.worker = WorkerProcess.start(
          program: "/bin/sh", arguments: ["-c", script], input: input, files: [file], folder: folder,
          allowance: allowance, watch: watch, queue: queue,
          onReport: { report in
            watch.look()
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

  /// Each script makes or starts one thing more than it may if `count` is 4.
  @Test(
    "a child that uses more than it may is killed, when the service looks",
    arguments: [
      ("for n in $(seq $count); do : > $0/$n; done", WorkerExcess.files(limit: 3)),
      ("head -c $((count * 65536)) /dev/zero > $0/a", .bytes(limit: 3 * 65_536)),
      ("for n in $(seq $((count - 1))); do sleep 1000 & p=\"$p $!\"; done", .threads(limit: 3)),
    ])
  func excess(_ script: String, _ limit: WorkerExcess) async throws {
    let folder = try TemporaryFolder()
    let allowance = WorkerAllowance(threads: 3, files: 3, bytes: 3 * 65_536)
    func life(_ count: Int) async -> Life {
      let script = script.replacing("$count", with: "\(count)").replacing("count *", with: "\(count) *")
        .replacing("count -", with: "\(count) -").replacing("$0", with: folder.path)
      return await run(
        script + "; " + Self.line("begun") + "[ \(count) = 4 ] && read line; kill $p 2>/dev/null; exit 0",
        in: folder.path, allowing: allowance)
    }
    #expect(await life(3).exit == .status(0))
    #expect(await life(4).exit == .exceeded(limit))
  }

  @Test("a worker's control group limits its threads and those of its programs, and goes with it")
  func group() async throws {
    let parent = "/sys/fs/cgroup/pids/stillwave-\(getpid())"
    guard unsafe mkdir(parent, 0o755) == 0 else { return print("Not tried: no hierarchy of the controller pids here") }
    defer { unsafe _ = rmdir(parent) }
    let groups = WorkerGroups(in: parent)
    let path = try #require(groups.make(threads: 3))
    // A shell that can't fork ends.
    let life = await run(
      "trap 'kill $p; wait; exit 7' EXIT; echo 0 > \(path)/cgroup.procs || exit 4; "
        + "for n in 1 2 3; do sleep 1000 & p=\"$p $!\"; done; trap - EXIT; kill $p; exit 3")
    #expect(life.exit == .status(7))
    groups.remove(path)
    #expect(unsafe access(path, F_OK) != 0)
  }

  @Test("only a control group of this user's is divided")
  func division() throws {
    let folder = try TemporaryFolder()
    func write(_ text: String, _ name: String) throws {
      try Data(text.utf8).write(to: URL(filePath: folder.path + "/" + name))
    }
    #expect(WorkerGroups(dividing: folder.path) == nil)
    try write("cpu memory\n", "cgroup.controllers")
    #expect(WorkerGroups(dividing: folder.path) == nil)
    try write("cpu memory pids\n", "cgroup.controllers")
    try write("", "cgroup.subtree_control")
    try FileManager.default.createDirectory(atPath: folder.path + "/service", withIntermediateDirectories: false)
    try write("", "service/cgroup.procs")
    #expect(WorkerGroups(dividing: folder.path) != nil)
    #expect(try String(contentsOfFile: folder.path + "/service/cgroup.procs", encoding: .utf8) == "\(getpid())")
    #expect(try String(contentsOfFile: folder.path + "/cgroup.subtree_control", encoding: .utf8) == "+pids")
  }

  @Test("a signal that nobody sent is counted, but not one of the service or of a limit")
  func signals() async {
    func count(_ signal: Int32) -> Int { WorkerSignals.bySignal.first { $0.signal == signal }?.count ?? 0 }
    let before = (count(SIGFPE), count(SIGXCPU), count(SIGABRT))
    #expect(await run("kill -FPE $$").exit == .signal(SIGFPE))
    #expect(await run("kill -XCPU $$").exit == .signal(SIGXCPU))
    #expect(await run(Self.line("memory_limit") + "kill -ABRT $$").exit == .signal(SIGABRT))
    #expect((count(SIGFPE), count(SIGXCPU), count(SIGABRT)) == (before.0 + 1, before.1, before.2))
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
