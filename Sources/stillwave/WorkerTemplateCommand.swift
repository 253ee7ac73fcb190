import ArgumentParser
import CLinux
import Glibc
import Jobs
import Processing
import Workers

/// Runs as the service's child: becomes a worker or a reader, as a copy of itself, for each order on standard input
/// (see `WorkerTemplate`). It ends when standard input closes, because the service is gone then.
struct WorkerTemplateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "worker-template", abstract: "Starts the service's workers.", shouldDisplay: false)

  @Argument(help: "Room for the words that copies show in process listings.")
  var room: [String] = []

  func run() throws {
    // Later workers are copies of this memory.
    OwnProcess.closeToOthers()
    rehearse()
    stillwave_prepare_filters()
    stillwave_release_free_pages()
    answer(WorkerTemplate.isReady)
    var order = [UInt8](repeating: 0, count: 4096)
    while true {
      var (input, output): (Int32, Int32) = (-1, -1)
      let count = unsafe order.withUnsafeMutableBytes { order in
        unsafe stillwave_receive_order(STDIN_FILENO, order.baseAddress, order.count, &input, &output)
      }
      guard count > 0, input >= 0 else { return }
      switch stillwave_fork_sibling() {
      case 0: become(order[..<count], input, output)
      case -1: answer(0)
      default: break
      }
      close(input)
      close(output)
    }
  }

  /// Takes a few milliseconds, which every copy saves. If it fails, the copies only take longer.
  ///
  /// On a thread of its own, because each `Mutex` of Swift notes the ID of the thread that uses it in that thread's
  /// memory. In a copy of this thread the ID would be wrong.
  private func rehearse() {
    var thread = pthread_t()
    let work: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { _ in
      try? WorkerRequest.rehearse()
      return nil
    }
    if unsafe pthread_create(&thread, nil, work, nil) == 0 { pthread_join(thread, nil) }
  }

  /// Continues as a worker or a reader. An order is a niceness and the words for process listings, of which the second
  /// says which one.
  ///
  /// Ends without running the destructors of libraries, which have nothing to save: they were 3 % of a worker's time
  /// for half a second of sound.
  private func become(_ order: ArraySlice<UInt8>, _ input: Int32, _ output: Int32) -> Never {
    let label = order.dropFirst()
    unsafe label.withUnsafeBytes { bytes in
      unsafe stillwave_show_arguments(bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    // Both before the answer: after it, the service may kill the session; and threads started later inherit the
    // niceness.
    _ = stillwave_lower_priority(0, Int32(order.first ?? 0))
    setsid()
    // The service no longer waits for this copy, and has started another worker.
    guard answer(getpid()) else { _exit(EXIT_FAILURE) }
    dup2(input, STDIN_FILENO)
    dup2(output, STDOUT_FILENO)
    close(input)
    close(output)
    let words = label.split(separator: 0, maxSplits: 2)
    if words.count > 1, words[1].elementsEqual(ReaderCommand.name.utf8) {
      ReaderService.serve(STDIN_FILENO)
    } else {
      do { try WorkerCommand.work() } catch { _exit(EXIT_FAILURE) }
    }
    _exit(EXIT_SUCCESS)
  }

  @discardableResult
  private func answer(_ number: Int32) -> Bool {
    var number = number
    return unsafe send(STDIN_FILENO, &number, MemoryLayout<Int32>.size, Int32(MSG_NOSIGNAL)) > 0
  }
}
