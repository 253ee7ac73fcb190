/// A transaction of the catalog: a session of its engine, and what the transaction has changed so far.
///
/// An engine may run a transaction's body again. Each run has its own value of this class, so that what an abandoned
/// run has noted is forgotten with it.
final class CatalogTransaction: SQLSession {
  private let session: any SQLSession
  /// nil in a transaction that only reads.
  private let hold: WriteHold?
  private var recordings: [RecordingID: Tenant] = [:]
  private var deleted: [RecordingID: Tenant] = [:]
  private var undescribed: [RecordingID: Recording] = [:]
  /// The descriptions that rows no longer name.
  private(set) var outdatedDescriptions: [ObjectKey] = []
  private let time: Timestamp
  private var jobs: [JobID: JobChange] = [:]
  private var leavesTraces = false
  /// Whether a row may have been inserted, changed or deleted.
  private(set) var hasChanged = false

  /// `time` is about when the transaction began, for versions of descriptions.
  init(_ session: any SQLSession, _ hold: WriteHold? = nil, at time: Timestamp = Timestamp(milliseconds: 0)) {
    (self.session, self.hold, self.time) = (session, hold, time)
  }

  // MARK: Statements

  var dialect: SQLDialect { session.dialect }

  func rows(_ sql: String, bound arguments: [SQLValue]) throws(StorageError) -> [SQLRow] {
    hold?.note(sql)
    let rows = try session.rows(sql, bound: arguments)
    if !rows.isEmpty, sql.contains(" RETURNING ") { hasChanged = true }
    return rows
  }

  func eachRow(_ sql: String, bound arguments: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
    hold?.note(sql)
    try session.eachRow(sql, bound: arguments, body)
  }

  @discardableResult
  func run(_ sql: String, bound arguments: [SQLValue]) throws(StorageError) -> Int {
    hold?.note(sql)
    let count = try session.run(sql, bound: arguments)
    if count > 0 { hasChanged = true }
    return count
  }

  // MARK: Changes

  /// Runs a DELETE on a table with what clients made: a deleted row is gone from the catalog, but not from the disk
  /// (see `Catalog.eraseTraces`). Returns the number of deleted rows.
  @discardableResult
  func erase(_ sql: String, _ arguments: [(any SQLConvertible)?] = []) throws(StorageError) -> Int {
    let count = try run(sql, arguments)
    if count > 0 { leavesTraces = true }
    return count
  }

  /// Runs a DELETE that returns columns, like `erase`, and returns the rows.
  func eraseReturning(_ sql: String, _ arguments: [(any SQLConvertible)?]) throws(StorageError) -> [SQLRow] {
    let rows = try rows(sql, arguments)
    if !rows.isEmpty { leavesTraces = true }
    return rows
  }

  /// Notes that something becomes garbage that clients made.
  func noteTraces() { leavesTraces = true }

  /// Notes that a recording's row was inserted or changed.
  func note(changed id: RecordingID, of tenant: Tenant) {
    recordings[id] = tenant
  }

  /// Notes that a recording's new description must be written. A recording without audio has none.
  func note(undescribed recording: Recording) {
    if recording.audioKey != nil { undescribed[recording.id] = recording }
  }

  /// Returns the version of a recording's next description, later than `known` too, and notes that the one before is
  /// outdated.
  func version(after recording: Recording, _ known: Int64) -> Int64 {
    if recording.audioKey != nil { outdatedDescriptions.append(recording.descriptionKey) }
    return max(recording.version + 1, known + 1, time.milliseconds)
  }

  /// Notes that a recording's row was deleted, or one that a job was to produce.
  func note(deleted id: RecordingID, of tenant: Tenant) {
    recordings[id] = nil
    undescribed[id] = nil
    deleted[id] = tenant
  }

  /// Notes that a job's row was inserted or changed, and what it is now.
  func note(changed job: Job) { jobs[job.id] = JobChange(job.id, of: job.tenant, job: job) }

  /// Notes that the row of a job was changed of which only the ID is known.
  func note(changed id: JobID, of tenant: Tenant) { jobs[id] = JobChange(id, of: tenant) }

  /// The recordings whose descriptions have to be written.
  var recordingsToDescribe: [Recording] { Array(undescribed.values) }

  /// What the transaction has changed.
  var changes: CatalogChanges {
    CatalogChanges(
      recordings: recordings.map { Owned($0.key, of: $0.value) }, deleted: deleted.map { Owned($0.key, of: $0.value) },
      jobs: Array(jobs.values), leavesTraces: leavesTraces)
  }
}
