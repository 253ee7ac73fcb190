/// What differs between the engines in the text of a statement. All members return SQL without arguments, or say where
/// they take one.
package enum SQLDialect: Sendable {
  case sqlite
  case postgres

  /// A condition: whether the text `column` contains an argument, compared by bytes.
  package func contains(_ column: String) -> String {
    switch self {
    case .sqlite: "instr(\(column), ?) > 0"
    case .postgres: "strpos(\(column), ?) > 0"
    }
  }

  /// An expression: whether the text `column` contains the text of another column.
  package func contains(_ column: String, other: String) -> String {
    switch self {
    case .sqlite: "instr(\(column), \(other)) > 0"
    case .postgres: "strpos(\(column), \(other)) > 0"
    }
  }

  /// A column that identifies a row of any table even if its key is damaged, for as long as a transaction. Its value
  /// comes back as an integer or text, and is bound as it came.
  package var rowIdentity: String {
    switch self {
    case .sqlite: "rowid"
    case .postgres: "ctid"
    }
  }

  /// An expression: the days since 1970 (UTC) by the database's clock.
  package var today: String {
    switch self {
    case .sqlite: "strftime('%s', 'now') / 86400"
    case .postgres: "CAST(floor(extract(epoch FROM now()) / 86400) AS bigint)"
    }
  }

  /// An expression: the milliseconds since 1970 by the clock of the database, at the moment of the statement. nil if
  /// the database has no clock of its own.
  package var clock: String? {
    switch self {
    case .sqlite: nil
    case .postgres: "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)"
    }
  }

  /// Ends a SELECT: locks its rows, which the transaction is about to change, until its end. Returns them as they are
  /// after earlier transactions, for which it waits.
  package var changingRows: String {
    switch self {
    case .sqlite: ""
    case .postgres: " FOR NO KEY UPDATE"
    }
  }

  /// Ends a SELECT: locks its rows until the end of the transaction, skipping those that others have locked. SQLite has
  /// one writer at a time, so there is nothing to lock.
  package var skippingLocked: String {
    switch self {
    case .sqlite: ""
    case .postgres: " FOR UPDATE SKIP LOCKED"
    }
  }

  /// A statement: takes the lock of a name, which is its argument, until the end of the transaction, and waits while
  /// another transaction has it. nil if there is only one writer at a time.
  package var lockingName: String? {
    switch self {
    case .sqlite: nil
    case .postgres: "SELECT 1 AS locked FROM pg_advisory_xact_lock(\(Self.namesSpace), hashtext(?))"
    }
  }

  /// The first half of the keys of `lockingName`, so that other users of the database get other locks.
  private static let namesSpace = 1_937_009_964

  /// A statement: switches the triggers of a table off or on, until it is switched back or the transaction is rolled
  /// back, and keeps others from writing to the table until the end of the transaction. nil if triggers always run.
  package func settingTriggers(of table: String, on isOn: Bool) -> String? {
    switch self {
    case .sqlite: nil
    case .postgres: "ALTER TABLE \(table) \(isOn ? "ENABLE" : "DISABLE") TRIGGER USER"
    }
  }

  /// Ends a SELECT: keeps its rows from being changed or deleted until the end of the transaction.
  package var holdingRows: String {
    switch self {
    case .sqlite: ""
    case .postgres: " FOR SHARE"
    }
  }
}
