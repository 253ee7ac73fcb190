import Testing

/// How ffmpeg is started: in a fence that it takes on and can't leave.
struct FencedProgramTests {
  private func shell(_ script: String, fence: String = "1073741824,10,0") throws -> Command.Finished {
    try Command.stillwave("run-fenced", "--fence", fence, "--", "/bin/bash", "-c", script)
  }

  @Test("the program that was asked for runs")
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
    // Standard output may be written to only as long as it is a pipe.
    #expect(try shell("\(deed) 2>/dev/null").status != 0)
  }

  @Test("a program that is not there is told")
  func missing() throws {
    let finished = try Command.stillwave("run-fenced", "--fence", "1073741824,10,0", "--", "/nonexistent")
    #expect(finished.status != 0)
  }
}
