import Foundation

/// Looks into /proc, for what a test must know of processes that are not its children.
enum Processes {
  /// Ids of the processes whose command line holds `text`, this one's own aside.
  static func naming(_ text: String) -> [pid_t] {
    all().filter { $0 != getpid() && commandLine(of: $0).contains(text) }
  }

  /// Ids of the children of a process.
  static func children(of parent: pid_t) -> [pid_t] {
    all().filter { status(of: $0, "PPid") == Int(parent) }
  }

  /// Kilobytes of memory that no file backs.
  static func anonymousKilobytes(of process: pid_t) -> Int { status(of: process, "RssAnon") ?? 0 }

  static func commandLine(of process: pid_t) -> String {
    guard let bytes = try? contents("/proc/\(process)/cmdline") else { return "" }
    return String(decoding: bytes.map { $0 == 0 ? 32 : $0 }, as: UTF8.self)
  }

  private static func all() -> [pid_t] {
    ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { pid_t($0) }
  }

  private static func status(of process: pid_t, _ name: String) -> Int? {
    guard let bytes = try? contents("/proc/\(process)/status") else { return nil }
    let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("\(name):") }
    return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }
  }
}

/// Whether `condition` comes true before a deadline: for what has no event to wait for, such as another process's end.
/// The deadline is for what never comes: on a busy machine the start of a worker, at its low priority, has taken half a
/// minute.
func eventually(withinSeconds seconds: Double = 120, _ condition: () throws -> Bool) rethrows -> Bool {
  let deadline = ContinuousClock.now + .seconds(seconds)
  while try !condition() {
    guard ContinuousClock.now < deadline else { return false }
    _ = poll(nil, 0, 5)
  }
  return true
}
