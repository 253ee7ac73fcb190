/// The conditions of a query, with their arguments.
struct Filter {
  private var conditions: [String] = []
  /// The arguments of all conditions, in order.
  private(set) var arguments: [(any SQLConvertible)?] = []

  /// Adds a condition, a constant of this module with a `?` for each argument.
  mutating func add(_ condition: String, _ arguments: (any SQLConvertible)?...) {
    conditions.append(condition)
    self.arguments += arguments
  }

  /// " WHERE a AND b", or an empty text without conditions.
  var text: String { conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ") }
}
