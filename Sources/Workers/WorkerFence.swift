import Terms

/// The resources that a worker may use. It gives up all others by fencing itself in before it opens a file made by
/// others.
///
/// Exceeding a limit ends the worker: by SIGXCPU, by SIGXFSZ, or by a crash whose report has the code `memory_limit`.
/// The worker has no network, starts no programs or processes, can't signal others, and can't gain rights. If the
/// kernel has Landlock (5.13), it can open only its source and the files in its folder. `FenceSupport` lists which of
/// these this machine lacks.
package struct WorkerFence: Codable, Sendable, Equatable {
  /// Memory not backed by a file, in bytes.
  package var memoryBytes: Int64
  /// Processor time of all threads, in seconds.
  package var processorSeconds: Int64
  /// Maximum length of each file written, in bytes.
  package var outputBytes: Int64

  /// Maximum number of open files: a handle per thread, and the files written.
  package static let descriptorLimit = 64

  /// Creates a value from its parts, each 0 or more.
  package init(memoryBytes: Int64, processorSeconds: Int64, outputBytes: Int64) {
    self.memoryBytes = memoryBytes
    self.processorSeconds = processorSeconds
    self.outputBytes = outputBytes
  }

  /// The three numbers as a command-line argument: `1073741824,60,4096`.
  package var text: String { "\(memoryBytes),\(processorSeconds),\(outputBytes)" }

  /// Parses such an argument; nil if it's invalid.
  package init?(text: String) {
    let numbers = text.split(separator: ",", omittingEmptySubsequences: false).map { Int64($0) }
    guard numbers.count == 3, let memory = numbers[0], let seconds = numbers[1], let output = numbers[2],
      memory >= 0, seconds >= 0, output >= 0
    else { return nil }
    self.init(memoryBytes: memory, processorSeconds: seconds, outputBytes: output)
  }

  /// The report that a worker writes if memory runs out.
  package var memoryExhausted: WorkerFailure {
    WorkerFailure(
      code: "memory_limit",
      detail: "The work on this recording needed more memory than the \(memoryBytes >> 20) MiB it may use.", retry: true
    )
  }
}
