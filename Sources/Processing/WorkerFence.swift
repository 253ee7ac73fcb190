import CLinux
import Glibc

/// What a worker may use up, and how it gives up the rest: it fences itself before it opens a file that others made.
///
/// A limit that is passed ends the worker: by SIGXCPU, by SIGXFSZ, or by a crash whose report has the code
/// `memory_limit`. Beyond the limits it has no network, starts no program or process, signals no other, and gets no
/// rights that it did not have. Where the kernel has Landlock (5.13), it opens no files but its source and its
/// folder's. Which of these this machine lacks, `FenceSupport` tells.
package struct WorkerFence: Codable, Sendable, Equatable {
  /// Memory that no file backs, in bytes.
  package var memoryBytes: Int64
  /// Processor time over all threads.
  package var processorSeconds: Int64
  /// Length of each file that is written, in bytes.
  package var outputBytes: Int64

  /// Files open at once: a handle for every thread, and the dispatch queues' own.
  package static let descriptorLimit = 64

  /// A value of known parts, each 0 or more.
  package init(memoryBytes: Int64, processorSeconds: Int64, outputBytes: Int64) {
    self.memoryBytes = memoryBytes
    self.processorSeconds = processorSeconds
    self.outputBytes = outputBytes
  }

  /// The three numbers, as one word of a command line has them: `1073741824,60,4096`.
  package var text: String { "\(memoryBytes),\(processorSeconds),\(outputBytes)" }

  /// nil where `text` is no such word.
  package init?(text: String) {
    let numbers = text.split(separator: ",", omittingEmptySubsequences: false).map { Int64($0) }
    guard numbers.count == 3, let memory = numbers[0], let seconds = numbers[1], let output = numbers[2],
      memory >= 0, seconds >= 0, output >= 0
    else { return nil }
    self.init(memoryBytes: memory, processorSeconds: seconds, outputBytes: output)
  }

  /// Fences this process in, for good: it may read the file `source`, and write in `folder`. Call it before the process
  /// has other threads, which would keep their files and their rights. Returns the errno with which the kernel refused
  /// a part of the fence that it has: then the process is not to look at any file. nil if all holds that the kernel
  /// has.
  package func enter(source: String, folder: String?) -> Int32? {
    unsafe stillwave_on_memory_exhausted(
      String(decoding: WorkerReport.failed(memoryExhausted).line(), as: UTF8.self))
    stillwave_lower_limits(
      UInt64(memoryBytes), UInt64(processorSeconds), UInt64(outputBytes), UInt64(Self.descriptorLimit))
    let refusal = unsafe stillwave_fence_worker(source, folder)
    return refusal == 0 ? nil : refusal
  }

  /// What a program gets besides its standard descriptors, and who it runs as.
  package struct Program: Sendable {
    /// The descriptor of the file that it reads, and of the one that it writes.
    package var input, output: Int32?
    /// Whether root becomes another user first.
    package var dropsRoot: Bool
    /// The process that starts it; nil if it may be any.
    package var parent: Int32?

    /// A value of these parts.
    package init(input: Int32?, output: Int32?, dropsRoot: Bool, parent: Int32? = nil) {
      (self.input, self.output, self.dropsRoot, self.parent) = (input, output, dropsRoot, parent)
    }
  }

  /// Fences this process in and becomes the program whose path is the first of `words`. Returns only if that fails: the
  /// errno. Files other than its two, its own and its libraries are closed to it, as are the network and other
  /// programs.
  package func become(_ words: [String], _ program: Program) -> Int32 {
    let texts = unsafe words.map { unsafe strdup($0) } + [nil]
    guard let path = unsafe texts[0] else { return EINVAL }
    stillwave_lower_limits(
      UInt64(memoryBytes), UInt64(processorSeconds), UInt64(outputBytes), UInt64(Self.descriptorLimit))
    return unsafe texts.withUnsafeBufferPointer { texts in
      var program = unsafe stillwave_program(
        path: path, words: texts.baseAddress, input: program.input ?? -1, output: program.output ?? -1,
        drops_root: program.dropsRoot, parent: program.parent ?? 0)
      return unsafe stillwave_become_program(&program)
    }
  }

  /// The report that a worker writes when memory runs out.
  private var memoryExhausted: WorkerFailure {
    WorkerFailure(
      code: "memory_limit",
      detail: "The work on this recording needed more memory than the \(memoryBytes >> 20) MiB it may use.", retry: true
    )
  }
}
