// If several processes share the catalog, a webhook is leased while one of them calls its receiver. So one at a time
// does, and if it dies before it has recorded the outcome, another one calls again when the lease has ended: a webhook
// is delivered at least once.

extension Catalog {
  /// Whether the job or the batch of a webhook has ended.
  private static let hasEnded = """
    (EXISTS (SELECT 1 FROM jobs WHERE id = webhooks.job AND state NOT IN ('queued', 'running'))
      OR EXISTS (SELECT 1 FROM batches WHERE id = webhooks.job AND finished_at IS NOT NULL))
    """

  /// Returns all webhooks, oldest job first, including those of unfinished jobs and batches; `isDue` is whether these
  /// have ended.
  package func webhooks() throws(StorageError) -> [(webhook: Webhook, isDue: Bool)] {
    try read { db in
      try Self.intact(
        db.rows(
          """
          SELECT webhooks.*, CASE WHEN \(Self.hasEnded) THEN 1 ELSE 0 END AS is_due FROM webhooks
          WHERE EXISTS (SELECT 1 FROM jobs WHERE id = webhooks.job)
            OR EXISTS (SELECT 1 FROM batches WHERE id = webhooks.job)
          ORDER BY job
          """)
      ) { row in (try WebhookRow(row: row).webhook, try value(row, "is_due")) }
    }
  }

  /// Returns at most `limit` webhooks whose job or batch has ended, whose pause is over, and which no process is
  /// calling; those that have waited longest first.
  package func dueWebhooks(limit: Int) throws(StorageError) -> [Webhook] {
    try read { db in
      let now = try now(db).milliseconds
      return try Self.intact(
        db.rows(
          """
          SELECT * FROM webhooks
          WHERE \(Self.hasEnded) AND not_before <= ? AND (lease_until IS NULL OR lease_until < ?)
          ORDER BY not_before, job LIMIT ?
          """, [now, now, limit])
      ) { try WebhookRow(row: $0).webhook }
    }
  }

  /// Takes a webhook for this process for some seconds, in which it must call the receiver and record the outcome.
  /// Returns nil if the webhook is gone, pauses, or is another process's.
  package func claimWebhook(of job: JobID, forSeconds seconds: Double) throws(StorageError) -> Webhook? {
    try write(.statementLocks) { db in
      let now = try now(db)
      // A timer of this process may end a pause slightly before the database's clock does.
      let claimed = try db.rows(
        """
        UPDATE webhooks SET node = ?, lease_until = ?
        WHERE job = ? AND not_before <= ? AND (lease_until IS NULL OR lease_until < ?) RETURNING *
        """,
        [holder.node, (now + seconds).milliseconds, job.text, (now + 1).milliseconds, now.milliseconds])
      return try claimed.first.map { try WebhookRow(row: $0).webhook }
    }
  }

  /// Gives a claimed webhook back with its number of attempts, for the next one after a pause. Does nothing if another
  /// process has claimed it meanwhile.
  package func release(_ webhook: Webhook, pauseSeconds: Double) throws(StorageError) {
    try write(.statementLocks) { db in
      try db.run(
        "UPDATE webhooks SET attempts = ?, not_before = ?, node = NULL, lease_until = NULL WHERE job = ? AND node = ?",
        [webhook.attempts, (try now(db) + pauseSeconds).milliseconds, webhook.job.text, holder.node])
    }
  }

  /// Records a failed attempt. Does nothing if the webhook was deleted meanwhile.
  package func update(_ webhook: Webhook) throws(StorageError) {
    try write(.statementLocks) { db in
      try db.run(
        "UPDATE webhooks SET attempts = ?, not_before = ? WHERE job = ?",
        [webhook.attempts, webhook.notBefore.milliseconds, webhook.job.text])
    }
  }

  /// Deletes a webhook that was delivered or given up on. Does nothing if another process has claimed it meanwhile:
  /// that one deletes it.
  package func removeWebhook(of job: JobID) throws(StorageError) {
    try write(.statementLocks) { db in
      try db.run("DELETE FROM webhooks WHERE job = ? AND (node IS NULL OR node = ?)", [job.text, holder.node])
    }
  }
}
