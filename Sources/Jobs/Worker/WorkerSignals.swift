import Synchronization

/// The workers of this process that a signal has ended, although neither the service nor a limit had sent one: a fault
/// of the program, or the system's lack of memory.
package enum WorkerSignals {
  private static let counts = Mutex<[Int32: Int]>([:])
  private static let log = Mutex<(any JobLog)?>(nil)

  /// Also logs them from now on.
  package static func log(to log: any JobLog) { self.log.withLock { $0 = log } }

  /// `work`: the kind of work, if it's known.
  static func add(_ signal: Int32, _ work: String?) {
    counts.withLock { $0[signal, default: 0] += 1 }
    log.withLock { $0 }?.failure(
      "a worker was ended by a signal that the service didn't send", ["signal": "\(signal)", "work": work ?? ""])
  }

  /// How often, by signal. SIGILL is there from the start, so that its first time is an increase.
  package static var bySignal: [(signal: Int32, count: Int)] {
    counts.withLock { $0 }.merging([4: 0]) { known, _ in known }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }
}
