import Foundation
import Synchronization

/// The largest anonymous memory (`RssAnon` of /proc/PID/status, kB) of a process and any of its children, sampled a
/// hundred times a second.
final class MemoryWatch: Sendable {
  private struct Peaks {
    var service = 0
    var child = 0
    var isOver = false
  }

  private let peaks = Mutex(Peaks())
  private let ended = DispatchSemaphore(value: 0)

  init(of process: Int32) {
    Thread.detachNewThread { [self] in
      while !peaks.withLock({ $0.isOver }) {
        let service = Self.anonymous(process)
        let children = Processes.children(of: process).map(Self.anonymous).max() ?? 0
        peaks.withLock {
          $0.service = max($0.service, service)
          $0.child = max($0.child, children)
        }
        // Sampled, because the kernel reports neither a peak of anonymous memory nor children that have come and gone.
        Thread.sleep(forTimeInterval: 0.01)
      }
      ended.signal()
    }
  }

  /// Ends the watch and returns the peak in kilobytes.
  func stop() -> (service: Int, child: Int) {
    peaks.withLock { $0.isOver = true }
    ended.wait()
    return peaks.withLock { ($0.service, $0.child) }
  }

  static func anonymous(_ process: Int32) -> Int {
    guard let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix("RssAnon") })
    else { return 0 }
    return Int(line.filter(\.isNumber)) ?? 0
  }
}
