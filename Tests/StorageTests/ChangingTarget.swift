@testable import Storage

/// A target before whose rows, or end, something else happens.
struct ChangingTarget: MoveTarget {
  enum Moment { case rows, end }

  let target: SharedMoveTarget
  let moment: Moment
  let change: @Sendable () throws -> Void

  init(_ target: SharedMoveTarget, at moment: Moment = .rows, _ change: @escaping @Sendable () throws -> Void) {
    (self.target, self.moment, self.change) = (target, moment, change)
  }

  var name: String { target.name }
  var media: any ObjectStore { target.media }
  var announcements: Catalog? { target.announcements }
  var state: MoveState { target.state }

  func clear() throws(StorageError) { try target.clear() }
  func catalogForReading() -> Catalog { target.catalogForReading() }

  func end() throws(StorageError) -> Int {
    try reach(.end)
    return try target.end()
  }

  func write(_ copy: @Sendable (any SQLSession, Move.Confirmation) throws -> Void) throws(StorageError) {
    try reach(.rows)
    try target.write(copy)
  }

  private func reach(_ moment: Moment) throws(StorageError) {
    guard moment == self.moment else { return }
    do { try change() } catch { throw .changedMeanwhile }
  }
}
