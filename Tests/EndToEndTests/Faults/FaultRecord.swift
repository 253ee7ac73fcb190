import Foundation
import Testing

/// Counts how often a fault was tried and what was lost. `deploy/faults` prints the rows as a table.
struct FaultRecord {
  private let name: String
  private(set) var tried = 0
  private(set) var survived = 0
  /// Promised things that were missing or wrong.
  private(set) var lost = 0

  init(_ name: String) { self.name = name }

  /// Rounds per kind of fault. For kills, `FAULT_ROUNDS` is the total, divided among their five moments.
  static let rounds = ProcessInfo.processInfo.environment["FAULT_ROUNDS"].flatMap { Int($0) } ?? 5

  /// Tries once. `attempt` returns descriptions of losses, empty if all is well. If it throws, the fault wasn't
  /// survived.
  mutating func attempt(_ comment: String = "", _ attempt: () throws -> [String]) {
    tried += 1
    do {
      let losses = try attempt()
      lost += losses.count
      if losses.isEmpty { survived += 1 }
      #expect(losses.isEmpty, "\(name) \(comment): \(losses)")
    } catch {
      Issue.record(error, "\(name) \(comment)")
    }
  }

  /// Appends the row to the table at `FAULT_TABLE`.
  func write(_ note: String = "") {
    guard let path = ProcessInfo.processInfo.environment["FAULT_TABLE"] else { return }
    let row = "\(name)\t\(tried)\t\(survived)\t\(lost)\t\(note)\n"
    let descriptor = unsafe open(path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
    guard descriptor >= 0 else { return }
    FileHandle(fileDescriptor: descriptor, closeOnDealloc: true).write(Data(row.utf8))
  }

  /// Reports, in the table and in the test's output, that the fault can't be tried on this machine.
  static func skip(_ name: String, _ reason: String) {
    print("Not tried: \(name): \(reason)")
    FaultRecord(name).write("not tried: \(reason)")
  }
}
