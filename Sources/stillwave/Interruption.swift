import Dispatch
import Glibc
import Synchronization

/// Ends the process early and cleanly on SIGINT and SIGTERM and, for a worker, when its standard input closes, which
/// means that the service that started it is gone.
enum Interruption {
  private static let isWatching = Atomic(false)

  /// Watches until the process ends; further calls do nothing.
  ///
  /// Each dispatch source is kept alive by its own handler, because tearing sources down isn't safe on Linux. `sigwait`
  /// would not work: other threads may have started before a mask could be set here, and a signal that one of them
  /// doesn't block would end the process and leave its unfinished files behind.
  static func watch(standardInput: Bool) {
    guard !isWatching.exchange(true, ordering: .relaxed) else { return }
    let queue = DispatchQueue(label: "signals")
    for number in [SIGINT, SIGTERM] {
      _ = signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler { withExtendedLifetime(source) { end(status: 128 + number) } }
      source.resume()
    }
    guard standardInput else { return }
    DispatchQueue(label: "standard input").async {
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
