import Foundation
import Testing

/// How ffmpeg is started: inside a fence that it can't leave.
struct FencedProgramTests {
  private func shell(_ script: String, fence: String = "1073741824,10,0") throws -> Command.Finished {
    try Command.stillwave("run-fenced", "--fence", fence, "--", "/bin/bash", "--norc", "-c", script)
  }

  @Test("the given program runs")
  func runs() throws {
    #expect(try shell("[[ 1 = 1 ]]").status == 0)
    #expect(try shell("exit 7").status == 7)
  }

  @Test(
    "it reaches neither the network, nor other programs and processes, nor files to write",
    arguments: [
      "exec /bin/true", "( : )", "/bin/true", "kill -0 $PPID", "echo > /dev/tcp/127.0.0.1/9", "ulimit -d unlimited",
      "ulimit -f unlimited",
    ])
  func refused(_ deed: String) throws {
    // Standard output may be written only if it's a pipe.
    #expect(try shell("\(deed) 2>/dev/null").status != 0)
  }

  @Test(
    "a program that writes a file reaches nothing but its two files, and no system call that isn't listed",
    arguments: ["--writes", "--appends"])
  func writes(right: String) throws {
    let folder = try TemporaryFolder()
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
    let program = folder.file("ffmpeg")
    try Program.copy(try Program.fenced(), to: program)
    let (input, output, other) = (folder.file("input"), folder.file("output"), folder.file("other"))
    for path in [output, other] { try write([1, 2, 3], to: path) }
    try write(HostileProgram.file("service=\(getpid())\ndata=\(folder.path)\nother=\(other)\n"), to: input)
    let command = try Command(
      "/bin/bash",
      [
        "-c",
        #"exec "$0" run-fenced --fence 1073741824,10,65536 --reads "$4" --drop-root -- "$1" 3<"$2" 4<>"$3" 9<"$3""#,
        try Program.path(), program, input, output, right,
      ])
    let finished = try command.finish()
    let outcomes = HostileProgram.outcomes(in: finished.lines.joined(separator: " "))
    for name in HostileProgramTests.attempts {
      #expect(outcomes[name] != nil && outcomes[name] != 0, "\(name): \(outcomes)")
    }
    #expect(outcomes["calls"] == Int(EPERM), "\(finished.lines)")
    // One that only appends opens no file for writing at all.
    #expect(outcomes["more-files"] == Int(right == "--writes" ? EACCES : EPERM), "\(finished.lines)")
    #expect(
      (outcomes["open-output"] == 0) == (right == "--writes") && outcomes["read-input"] == Int(EPERM), "\(outcomes)")
    #expect(outcomes["user"] == (geteuid() == 0 ? 65_533 : Int(geteuid())))
    if geteuid() == 0 { #expect(outcomes["tasks"] == Int(EAGAIN), "\(outcomes)") }
    #expect(try contents(other) == [1, 2, 3] && contents(output) == (right == "--writes" ? [] : [1, 2, 3]))
  }

  @Test("a program that may only append writes through its descriptor")
  func appends() throws {
    let folder = try TemporaryFolder()
    let output = folder.file("output")
    let script = #"exec "$0" run-fenced --fence 1073741824,10,65536 --appends -- "$@" 4>"$OUTPUT""#
    func run(_ deed: String) throws -> Int32 {
      try Command(
        "/bin/bash",
        ["-c", script.replacing("$OUTPUT", with: output), try Program.path(), "/bin/bash", "--norc", "-c", deed]
      ).finish().status
    }
    #expect(try run("echo written >&4") == 0)
    #expect(try contents(output) == Array("written\n".utf8))
    #expect(try run("echo more >&4; echo opened >/proc/self/fd/4") != 0)
    #expect(try contents(output) == Array("more\n".utf8))
  }

  @Test("a program whose parent has already ended doesn't run")
  func orphan() throws {
    let words = ["run-fenced", "--fence", "1073741824,10,0", "--parent"]
    func status(parent: String) throws -> Int32 {
      try Command(
        "/bin/bash",
        ["-c", #""$0" "$@"; exit $?"#, try Program.path()] + words + [
          parent, "--", "/bin/bash", "--norc", "-c", "exit 7",
        ]
      ).finish().status
    }
    #expect(try status(parent: "1") != 7)
    #expect(try status(parent: "0") == 7)
  }

  @Test("a missing program is reported")
  func missing() throws {
    let finished = try Command.stillwave("run-fenced", "--fence", "1073741824,10,0", "--", "/nonexistent")
    #expect(finished.status != 0)
  }
}
