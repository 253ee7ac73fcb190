/// A row of a result. The rows of one result share the names of its columns.
package struct SQLRow: Sendable {
  /// The names of the columns, in the order of the values.
  package let columns: [String]
  /// The values.
  package let values: [SQLValue]

  /// Creates a row. `columns` and `values` have the same length.
  package init(columns: [String], values: [SQLValue]) { (self.columns, self.values) = (columns, values) }

  /// The value of a column, or nil if there is no such column. O(columns): comparing a few short names takes less time
  /// than hashing one.
  package subscript(_ column: String) -> SQLValue? { columns.firstIndex(of: column).map { values[$0] } }
}
