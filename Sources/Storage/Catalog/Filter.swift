/// The conditions of a query, with their arguments.
struct Filter {
  private var conditions: [String] = []
  /// The arguments of all conditions, in order.
  private(set) var arguments: [(any SQLConvertible)?] = []

  /// Creates a query without conditions.
  init() {}

  /// Creates a query for the row with an ID. With a tenant, another tenant's row doesn't exist.
  init(id: String, of tenant: Tenant?) {
    add("id = ?", id)
    add(tenant)
  }

  /// Leaves only the rows of a tenant; nil for those of all.
  mutating func add(_ tenant: Tenant?) { if let tenant { add("tenant = ?", tenant.name) } }

  /// Adds a condition, a constant of this module with a `?` for each argument.
  mutating func add(_ condition: String, _ arguments: (any SQLConvertible)?...) {
    conditions.append(condition)
    self.arguments += arguments
  }

  /// Adds a condition with the arguments of another filter.
  mutating func add(_ condition: String, adding arguments: [(any SQLConvertible)?]) {
    conditions.append(condition)
    self.arguments += arguments
  }

  /// " WHERE a AND b", or an empty text without conditions.
  var text: String { conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ") }
}
