// Looks up whether a transaction was committed whose COMMIT got no response.
//
// The new connection must reach the server in the same epoch (see ServerEpoch). While the transaction is in progress,
// the server hasn't noticed that the client is gone, or it waits for a standby. In the first case, its session is idle
// inside the transaction, and ending it can lose nothing that anyone was promised; in the second, it is active and left
// alone. Either way, only pg_xact_status() decides.
//
// Source: https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-PG-SNAPSHOT

import Storage
import Terms

struct CommitOutcome {
  private let commit: SentCommit
  private let settings: PostgresSettings

  init(_ commit: SentCommit, settings: PostgresSettings) {
    self.commit = commit
    self.settings = settings
  }

  /// Blocks until the outcome is known, or throws `.outcomeUnknown` at the deadline or if the server has forgotten.
  func wasCommitted() throws(PostgresError) -> Bool {
    let deadline = Deadline(seconds: settings.outcomeWaitSeconds, by: settings.clock)
    var backoff = Backoff(firstSeconds: 0.01, limitSeconds: 1)
    var reason = ""
    while !deadline.isOver {
      do {
        let connection = try PostgresConnection(settings)
        while !deadline.isOver {
          if let outcome = try ask(connection) { return outcome }
          reason = "the transaction is in progress"
          settings.clock.pause(min(backoff.seconds(), deadline.secondsLeft))
        }
      } catch {
        if case .outcomeUnknown = error { throw error }
        reason = "\(error)"
        settings.clock.pause(min(backoff.seconds(), deadline.secondsLeft))
      }
    }
    throw unknown(.deadline(reason: reason))
  }

  /// Returns the outcome, or nil if the transaction is in progress.
  private func ask(_ connection: PostgresConnection) throws(PostgresError) -> Bool? {
    let id = SQLValue.text(String(commit.transaction))
    let status: SQLValue?
    do {
      status = try connection.run("SELECT pg_xact_status(CAST(? AS xid8))", [id]).rows.first?.values.first
    } catch {
      // The ID is in the future: the server has recovered, and the transaction isn't part of what it has.
      if error.sqlState == "22023" { return false }
      throw error
    }
    guard let epoch = commit.epoch, epoch == connection.epoch else { throw unknown(.serverRecovered) }
    switch status {
    case .text("committed"): return true
    case .text("aborted"): return false
    case .text: break
    default: throw unknown(.forgotten)
    }
    _ = try connection.run(
      """
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE pid = ? AND state = 'idle in transaction' AND backend_xid = CAST(CAST(? AS xid8) AS xid)
      """, [.integer(Int64(commit.backend)), id])
    return nil
  }

  private func unknown(_ cause: UnknownOutcome) -> PostgresError {
    .outcomeUnknown(transaction: commit.transaction, cause: cause)
  }
}
