import CLinux
import Glibc
import Terms
import Workers

extension WorkerFence {
  /// Permanently fences in this process: it may read the file `source`, and the files in `folder`, write `outputs`, of
  /// which all exist, and remove files. If that is nil, it may also create files in the folder. It may use `threads` of
  /// `Threads` and can't start others. Call it before the process has other threads, which would keep their files and
  /// their rights. Returns the errno if the kernel refused a part of the fence that it supports; then the process must
  /// not open any file. nil if everything that the kernel supports is in force.
  package func enter(source: String, folder: String?, outputs: [String]? = [], threads: Int = 0) -> Int32? {
    unsafe stillwave_on_memory_exhausted(
      String(decoding: WorkerReport.failed(memoryExhausted).line(), as: UTF8.self))
    stillwave_lower_limits(
      UInt64(memoryBytes), UInt64(processorSeconds), UInt64(outputBytes), UInt64(Self.descriptorLimit))
    let paths = unsafe outputs.map { unsafe $0.map { unsafe UnsafePointer(strdup($0)) } + [nil] }
    var refusal = unsafe stillwave_fence_worker(source, folder, paths)
    guard refusal == 0 else { return refusal }
    Threads.shared.prepare(threads)
    refusal = stillwave_filter_worker(folder != nil)
    return refusal == 0 ? nil : refusal
  }

  /// What a program gets besides its standard descriptors, and the user it runs as.
  package struct Program: Sendable {
    /// The descriptors of the file it reads and of the file it writes.
    package var input, output: Int32?
    /// Whether it writes only to the open descriptor of the latter, and has no right to open it.
    package var outputStaysOpen = false
    /// Whether root switches to another user first.
    package var dropsRoot: Bool
    /// The process that must be the parent; nil for any.
    package var parent: Int32?

    /// Creates a value from its parts.
    package init(
      input: Int32?, output: Int32?, outputStaysOpen: Bool = false, dropsRoot: Bool, parent: Int32? = nil
    ) {
      (self.input, self.output, self.dropsRoot, self.parent) = (input, output, dropsRoot, parent)
      self.outputStaysOpen = outputStaysOpen
    }
  }

  /// Fences in this process and executes the program whose path is the first of `words`. Returns only on failure, with
  /// the errno. The program can open only its two files, its own, and its libraries, and has no access to the network
  /// or other programs.
  package func become(_ words: [String], _ program: Program) -> Int32 {
    let texts = unsafe words.map { unsafe strdup($0) } + [nil]
    guard let path = unsafe texts[0] else { return EINVAL }
    stillwave_lower_limits(
      UInt64(memoryBytes), UInt64(processorSeconds), UInt64(outputBytes), UInt64(Self.descriptorLimit))
    return unsafe texts.withUnsafeBufferPointer { texts in
      var program = unsafe stillwave_program(
        path: path, words: texts.baseAddress, input: program.input ?? -1, output: program.output ?? -1,
        output_stays_open: program.outputStaysOpen, drops_root: program.dropsRoot, parent: program.parent ?? 0)
      return unsafe stillwave_become_program(&program)
    }
  }
}
