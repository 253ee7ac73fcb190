import Dispatch
import Glibc
import Synchronization
import Terms

/// Ends the process early and cleanly.
enum Interruption {
  private static let isWatching = Atomic(false)

  /// Ends a command on SIGINT and SIGTERM, without leaving unfinished files behind. Watches until the process ends;
  /// further calls do nothing.
  ///
  /// Each dispatch source is kept alive by its own handler, because tearing sources down isn't safe on Linux. `sigwait`
  /// would not work: other threads may have started before a mask could be set here, and a signal that one of them
  /// doesn't block would end the process and leave its unfinished files behind.
  static func watch() {
    guard !isWatching.exchange(true, ordering: .relaxed) else { return }
    let queue = DispatchQueue(label: "signals")
    for number in [SIGINT, SIGTERM] {
      _ = signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler { withExtendedLifetime(source) { end(status: 128 + number) } }
      source.resume()
    }
  }

  /// Ends a worker when its standard input closes, which means that the service that started it is gone. Takes one of
  /// its threads; returns false if there is none.
  static func endWithStandardInput() -> Bool {
    Threads.shared.run {
      var byte: UInt8 = 0
      while true {
        let count = unsafe read(STDIN_FILENO, &byte, 1)
        if count == 0 || (count < 0 && errno != EINTR) { end(status: 128 + SIGHUP) }
      }
    }
  }

  private static func end(status: Int32) {
    TemporaryFiles.shared.removeAll()
    _exit(status)
  }
}
