import Storage

/// What a tenant may have and use, by the names of the members `limits` of a key. A limit of 0 allows nothing.
package struct TenantLimits: Sendable, Equatable {
  /// The name of a limit, as in a key and in the code `limit_<name>` of a refusal.
  package enum Name: String, Sendable, CaseIterable {
    case storedBytes = "stored_bytes"
    case recordings
    case queuedJobs = "queued_jobs"
    case runningJobs = "running_jobs"
    case openUploads = "open_uploads"
    case requestsPerSecond = "requests_per_second"
    case jobSecondsPerDay = "job_seconds_per_day"

    /// Returns what a value must be; nil if `value` is that.
    func expectation(of value: Double) -> String? {
      switch self {
      // The lowest is one request in about a day.
      case .requestsPerSecond:
        value == 0 || (1e-5...TenantLimits.greatest).contains(value) ? nil : "0, or a number from 0.00001"
      case .jobSecondsPerDay: (0...TenantLimits.greatest).contains(value) ? nil : "a number, 0 or more"
      default:
        (0...TenantLimits.greatest).contains(value) && value == value.rounded() ? nil : "a whole number, 0 or more"
      }
    }
  }

  private var values: [Name: Double] = [:]

  /// Creates limits without any value.
  package init() {}

  /// The value of a limit; nil if there is none.
  package subscript(_ name: Name) -> Double? {
    get { values[name] }
    set { values[name] = newValue }
  }

  /// The limits by the names that a key's line has.
  var byName: [String: Double] {
    Dictionary(uniqueKeysWithValues: values.map { ($0.key.rawValue, $0.value) })
  }

  /// Adds the limits that another key of the tenant names: of different values, the highest counts.
  mutating func join(_ other: TenantLimits) { values.merge(other.values) { max($0, $1) } }

  /// The greatest value: numbers up to this are exact.
  fileprivate static let greatest = 0x1p53

  /// Reads the member `limits` of a key.
  init(json: JSONValue) throws(KeyFault) {
    let names = Name.allCases.map(\.rawValue).joined(separator: ", ")
    guard case .object(let members) = json else { throw .invalid("limits", "an object with any of \(names)") }
    for (member, value) in members.sorted(by: { $0.key < $1.key }) {
      guard let name = Name(rawValue: member) else { throw .unknown("limits.\(member)") }
      let number = if case .number(let number) = value { number } else { -1.0 }
      if let expected = name.expectation(of: number) { throw .invalid("limits.\(member)", expected) }
      values[name] = number
    }
  }
}
