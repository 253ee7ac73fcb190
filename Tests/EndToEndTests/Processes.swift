import Foundation

/// Reads /proc for facts about processes that aren't the test's children.
enum Processes {
  /// The ids of processes whose command line contains `text`, except this one's.
  static func naming(_ text: String) -> [pid_t] {
    all().filter { $0 != getpid() && commandLine(of: $0).contains(text) }
  }

  /// The ids of a process's children.
  static func children(of parent: pid_t) -> [pid_t] {
    all().filter { status(of: $0, "PPid") == Int(parent) }
  }

  /// Memory not backed by files, in kilobytes.
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

/// What takes longer, in seconds, hangs. It says nothing about how long anything should take: that is tested in
/// process, with a clock that the tests move.
let hung = 300.0

/// Returns whether `condition` becomes true, for things without an event to wait for, such as the end of another
/// process; false if it hangs.
func eventually(_ condition: () throws -> Bool) rethrows -> Bool {
  let deadline = ContinuousClock.now + .seconds(hung)
  while try !condition() {
    guard ContinuousClock.now < deadline else { return false }
    _ = poll(nil, 0, 5)
  }
  return true
}
