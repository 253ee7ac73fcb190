import Foundation
import Testing

/// How often a fault was tried, and what came of it. `deploy/faults` prints the rows as a table.
struct FaultRecord {
  private let name: String
  private(set) var tried = 0
  private(set) var survived = 0
  /// Things that had been promised and were gone, or wrong.
  private(set) var lost = 0

  init(_ name: String) { self.name = name }

  /// Rounds for each kind of fault: `FAULT_ROUNDS` in all for the kills, shared between their five moments.
  static let rounds = ProcessInfo.processInfo.environment["FAULT_ROUNDS"].flatMap { Int($0) } ?? 5

  /// Tries once; `attempt` says what was lost, nothing where all is well. What it throws counts as not survived.
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

  /// Appends the row to the table that `FAULT_TABLE` names.
  func write(_ note: String = "") {
    guard let path = ProcessInfo.processInfo.environment["FAULT_TABLE"] else { return }
    let row = "\(name)\t\(tried)\t\(survived)\t\(lost)\t\(note)\n"
    let descriptor = unsafe open(path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
    guard descriptor >= 0 else { return }
    FileHandle(fileDescriptor: descriptor, closeOnDealloc: true).write(Data(row.utf8))
  }

  /// Says, in the table and beside the tests, that this machine does not let the fault be tried.
  static func skip(_ name: String, _ reason: String) {
    print("Not tried: \(name): \(reason)")
    FaultRecord(name).write("not tried: \(reason)")
  }
}
