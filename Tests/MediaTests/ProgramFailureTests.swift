import Glibc
import Terms
import Testing

@testable import Media

/// How a program ended, according to waitpid(2), and what is at fault.
struct ProgramFailureTests {
  @Test(
    "the exit status distinguishes a program's own failure from a bad file",
    arguments: [
      (0, nil), (1, nil), (183, nil), (255, nil), (244, .outOfMemory), (12, .outOfMemory),
      (127, .notStarted(status: 127)), (126, .notStarted(status: 126)), (64, .notStarted(status: 64)),
    ] as [(Int32, ProgramFailure?)])
  func statuses(status: Int32, failure: ProgramFailure?) {
    #expect(ProgramFailure(waitStatus: status << 8) == failure)
  }

  @Test(
    "the signal distinguishes a crash, a limit, a closed pipe, and a kill",
    arguments: [
      (SIGPIPE, nil), (SIGXCPU, nil), (SIGXFSZ, nil), (SIGKILL, .killed), (SIGSEGV, .crashed(signal: SIGSEGV)),
      (SIGABRT, .crashed(signal: SIGABRT)), (SIGSYS, .crashed(signal: SIGSYS)),
    ] as [(Int32, ProgramFailure?)])
  func signals(signal: Int32, failure: ProgramFailure?) {
    #expect(ProgramFailure(waitStatus: signal) == failure)
    // With a core dump.
    #expect(ProgramFailure(waitStatus: signal | 0x80) == failure)
  }
}
