import Glibc
import Processing
import Terms
import Testing
import Workers

@testable import AudioService
@testable import Jobs

/// Which party is at fault for a failed job.
@Suite struct JobErrorTests {
  @Test(
    "an error's status class depends on the party at fault",
    arguments: [
      (422, ["unsupported_media", "unsupported_format", "unsupported_output", "seek_failed"]),
      (422, ["noise_region_too_short", "noise_region_outside", "silent_noise", "window_outside"]),
      (422, ["memory_limit", "cpu_limit", "time_limit", "output_limit"]), (507, ["disk_full"]),
      (500, ["worker_failed", "stalled", "io_error", "write_failed", "decoder_failed", "encoder_failed"]),
      (500, ["waveform_failed", "a code of a later version"]),
    ])
  func classes(status: Int, codes: [String]) {
    for code in codes {
      let error = JobError(WorkerFailure(code: code, detail: "It failed.", retry: false))
      #expect(error.status == status && error.code == code)
    }
  }

  @Test("a worker that was killed for exceeding a limit names the limit", arguments: [SIGXCPU, SIGXFSZ])
  func exceeded(signal: Int32) {
    let fence = WorkerFence(memoryBytes: 1, processorSeconds: 17, outputBytes: 23)
    let failure = WorkerFailure(.signal(signal), nil, fence)
    #expect(failure.code == (signal == SIGXCPU ? "cpu_limit" : "output_limit") && failure.status.code == 422)
    #expect(failure.detail.contains(signal == SIGXCPU ? "17 s" : "23 bytes"))
  }

  @Test("a worker that ended without a report is the service's fault")
  func exits() {
    let fence = WorkerFence(memoryBytes: 1, processorSeconds: 1, outputBytes: 1)
    for exit: WorkerExit in [.status(0), .status(3), .signal(9), .signal(11), .notStarted(errno: 11)] {
      #expect(WorkerFailure(exit, nil, fence).status.code == 500)
    }
    #expect(WorkerFailure(.signal(9), .stalled(seconds: 1), fence).status.code == 500)
    #expect(WorkerFailure(.signal(9), .diskFull, fence).status.code == 507)
    #expect(WorkerFailure(.signal(9), .tooLong(seconds: 1), fence).status.code == 422)
  }
}
