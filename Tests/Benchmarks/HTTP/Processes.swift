import Foundation

/// Facts about processes from the kernel.
enum Processes {
  static func children(of process: Int32) -> [Int32] {
    let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
    return tasks.flatMap { task in
      let list = (try? String(contentsOfFile: "/proc/\(process)/task/\(task)/children", encoding: .utf8)) ?? ""
      return list.split(separator: " ").compactMap { Int32($0) }
    }
  }

  /// CPU time that processes have used so far, in seconds (fields 14 and 15 of /proc/PID/stat, proc(5)).
  static func processorSeconds(_ processes: [Int32]) -> Double {
    processes.reduce(0) { $0 + processorSeconds($1, fields: 14...15) }
  }

  /// The same for a process and those of its children that have ended and been waited for (fields 14 to 17).
  static func processorSecondsWithEnded(_ process: Int32) -> Double { processorSeconds(process, fields: 14...17) }

  /// The same with the children that run, such as the service's readers.
  static func processorSecondsWithChildren(_ process: Int32) -> Double {
    children(of: process).reduce(processorSecondsWithEnded(process)) { $0 + processorSecondsWithEnded($1) }
  }

  private static func processorSeconds(_ process: Int32, fields: ClosedRange<Int>) -> Double {
    let text = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
    // After the name, which may contain anything, the third field follows.
    let values = text.split(separator: ")").last?.split(separator: " ") ?? []
    let ticks = fields.reduce(0.0) { $0 + (values.count > $1 - 3 ? Double(values[$1 - 3]) ?? 0 : 0) }
    return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
  }
}
