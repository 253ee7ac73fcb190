// The seam under the catalog. All of the catalog's queries are written once, in SQL that SQLite and PostgreSQL both
// understand, and run on an engine. What differs is asked of the engine's dialect.
//
// The common subset:
//
//   arguments     positional `?`, each used once; an engine rewrites them if its server has another form. A `?` in a
//                 text literal is not an argument. An argument takes the type of the place where it stands, so `? IS
//                 NULL` alone isn't valid: such conditions are left out of the statement
//   names         unquoted names are lower case; `offset` is reserved and quoted: "offset"
//   types         text, bigint (INTEGER in SQLite), double precision (REAL), bytea (BLOB); IDs are text. A flag is an
//                 integer, 0 or 1, compared as such: `is_deleted = 0`. The result of a condition (`EXISTS (…)`) comes
//                 back as an integer, 0 or 1. Text is compared and sorted by its bytes (COLLATE "C" in PostgreSQL)
//   sums          `CAST(sum(x) AS bigint)`, because PostgreSQL's sum of bigint is numeric
//   upserts       `ON CONFLICT (…) DO NOTHING` or `DO UPDATE SET x = excluded.x`; `RETURNING` is available
//   comparisons   `IS NOT DISTINCT FROM` where both sides may be null (SQLite 3.39 or newer)
//   not used      rowid, datetime(), strftime(), json1, GLOB, COLLATE, `INSERT OR …`, last_insert_rowid(), PRAGMA
//
// What an implementation must hold:
//
//   - A `read` sees one snapshot, whatever is committed while it runs. It changes nothing: a statement that would is an
//     error.
//   - A `write` is serializable, or behaves as if: it commits only if its outcome is the same as with all writes one
//     after the other. When it has returned, its changes survive a crash and a power failure, and every `read` that
//     begins afterward sees them. One that is `unflushed` may be lost in a crash. If the body throws, or the commit
//     fails, nothing is changed.
//   - A `write` may run its body several times, after a serialization failure or a deadlock, each time in a new
//     transaction with a new session. Only the last run's result is returned. An error that a run throws after its
//     session has met such a failure counts as that failure, whatever it is. The number of runs is bounded.
//   - A `read` runs its body at most once. It may start over with another connection until the body begins.
//   - Every call blocks its thread, with a deadline for connections and locks. Calls may come from several threads at
//     once. A body must not call the engine.
//   - A session is valid only while its body runs, on the thread that runs it.

/// A database that runs transactions written in the common subset of SQL.
package protocol SQLEngine: AnyObject, Sendable {
  /// What differs in the engine's SQL.
  var dialect: SQLDialect { get }

  /// Runs `body` in a transaction that reads one snapshot, and returns its result.
  ///
  /// Throws what the body throws, if that is a `StorageError`.
  func read<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value

  /// Runs `body` in a transaction that may change the database, commits it, and returns the result.
  ///
  /// The body may run several times, so it's `@Sendable`: it can't change variables outside. Throws what the body
  /// throws, if that is a `StorageError`; `.diskFull`; `.busy` if other writers were in the way until the deadline or
  /// the last run (SQLite: `.database` with SQLITE_BUSY); `.unreachable`; and `.outcomeUnknown`.
  func write<Value: Sendable>(
    _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
  ) throws(StorageError) -> Value

  /// Throws if the engine can't accept writes although it may not have failed yet, for example because the database's
  /// file was replaced. `write` calls it first. Costs microseconds and no query.
  func checkUsable() throws(StorageError)

  /// Removes traces of deleted rows from the database's files as far as it can, in steps between which others can
  /// write; `pagesAtOnce` bounds a step.
  func eraseTraces(pagesAtOnce: Int) throws(StorageError)

  /// Makes the database's main file complete, so that it can be copied by itself, if the engine has such a file.
  func checkpoint() throws(StorageError)

  /// Frees the pages of the database that connections cache and don't use.
  func releaseMemory()

  /// Closes all connections. No other call may be in progress or follow.
  func close() throws(StorageError)
}

extension SQLEngine {
  /// Does nothing: a server keeps the database in memory.
  package func releaseMemory() {}

  /// Runs `body` in a serializable transaction; see `write(_:_:)`.
  package func write<Value: Sendable>(
    _ body: @Sendable (any SQLSession) throws -> Value
  ) throws(StorageError) -> Value {
    try write(.serializable, body)
  }
}

/// How a writing transaction is kept apart from others.
package enum SQLIsolation: Sendable {
  /// As if all transactions ran one after the other.
  case serializable
  /// Each statement sees the rows that are committed when it begins, and must take its own locks (`FOR UPDATE`).
  /// For hot statements that would fail too often otherwise. SQLite, which has one writer, treats it as `serializable`.
  case statementLocks
  /// Like `statementLocks`, but the commit waits for neither the disk nor a standby, so a crash may undo it. For notes
  /// that only save work. SQLite makes it durable, too.
  case unflushed
}
