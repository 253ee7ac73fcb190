import Storage

/// What a statement returned.
struct StatementResult {
  /// Empty for a statement that returns no rows.
  let rows: [SQLRow]
  /// How many rows the statement inserted, updated, deleted, or selected.
  let changedRows: Int
}
