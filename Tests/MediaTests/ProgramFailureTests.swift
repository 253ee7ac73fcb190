import Glibc
import Testing

@testable import Media

/// How a program ended, as waitpid(2) has it, and who is to blame.
struct ProgramFailureTests {
  @Test(
    "an exit status tells a program's own failure from what it says of a file",
    arguments: [
      (0, nil), (1, nil), (183, nil), (255, nil), (244, .outOfMemory), (12, .outOfMemory),
      (127, .notStarted(status: 127)), (126, .notStarted(status: 126)), (64, .notStarted(status: 64)),
    ] as [(Int32, ProgramFailure?)])
  func statuses(status: Int32, failure: ProgramFailure?) {
    #expect(ProgramFailure(waitStatus: status << 8) == failure)
  }

  @Test(
    "a signal tells a crash from a limit, from a pipe that nobody reads and from a kill",
    arguments: [
      (SIGPIPE, nil), (SIGXCPU, nil), (SIGXFSZ, nil), (SIGKILL, .killed), (SIGSEGV, .crashed(signal: SIGSEGV)),
      (SIGABRT, .crashed(signal: SIGABRT)), (SIGSYS, .crashed(signal: SIGSYS)),
    ] as [(Int32, ProgramFailure?)])
  func signals(signal: Int32, failure: ProgramFailure?) {
    #expect(ProgramFailure(waitStatus: signal) == failure)
    // With a core dumped.
    #expect(ProgramFailure(waitStatus: signal | 0x80) == failure)
  }
}
