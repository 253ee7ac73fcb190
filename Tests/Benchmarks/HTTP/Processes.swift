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
    let ticks = processes.reduce(0.0) { sum, process in
      let text = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
      let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
      guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return sum }
      return sum + user + system
    }
    return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
  }
}
