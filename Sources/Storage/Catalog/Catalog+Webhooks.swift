extension Catalog {
  /// Returns all webhooks, oldest job first, including those of unfinished jobs; `isDue` is whether the job has
  /// finished.
  package func webhooks() throws(StorageError) -> [(webhook: Webhook, isDue: Bool)] {
    try read { db in
      try Self.intact(
        db.rows(
          """
          SELECT webhooks.*, jobs.state NOT IN ('queued', 'running') AS is_due
          FROM webhooks JOIN jobs ON jobs.id = webhooks.job ORDER BY webhooks.job
          """)
      ) { row in (try WebhookRow(row: row).webhook, try value(row, "is_due")) }
    }
  }

  /// Records a failed attempt. Does nothing if the webhook was deleted meanwhile.
  package func update(_ webhook: Webhook) throws(StorageError) {
    try write { db in
      try db.run(
        "UPDATE webhooks SET attempts = ?, not_before = ? WHERE job = ?",
        [webhook.attempts, webhook.notBefore.milliseconds, webhook.job.text])
    }
  }

  /// Deletes a webhook that was delivered or given up on.
  package func removeWebhook(of job: JobID) throws(StorageError) {
    try write { db in
      try db.run("DELETE FROM webhooks WHERE job = ?", [job.text])
    }
  }
}
