/// The order of a list of recordings.
package struct RecordingOrder: Sendable, Equatable {
  /// What recordings are sorted by; those that have the same are sorted by when they were created.
  package enum Key: String, CaseIterable, Sendable {
    case created
    /// The first 255 characters, ignoring case as a search does.
    case name
    /// Recordings of unknown length come before all others.
    case duration
  }

  /// What they are sorted by.
  package var key: Key
  /// Whether the oldest, the first name or the shortest comes first.
  package var isAscending: Bool

  /// Creates an order; the default is the newest first.
  package init(by key: Key = .created, isAscending: Bool = false) { (self.key, self.isAscending) = (key, isAscending) }

  /// The expression that rows are sorted by, which an index has.
  var column: String {
    switch key {
    case .created: "recordings.id"
    case .name: "substr(recordings.name_folded, 1, 255)"
    case .duration: "coalesce(recordings.duration, -1)"
    }
  }
}

/// A place in an ordered list of recordings: after one that may have been deleted since.
package struct RecordingPlace: Sendable, Equatable {
  /// The recording's ID.
  package var id: RecordingID
  /// What it is sorted by; nil for what it is sorted by now, and the list ends if it isn't there any more.
  package var key: String?

  /// Creates a place from its values.
  package init(_ id: RecordingID, key: String? = nil) { (self.id, self.key) = (id, key) }

  /// The place after `recording`.
  package init(after recording: Recording, in order: RecordingOrder) {
    id = recording.id
    switch order.key {
    case .created: key = nil
    case .name:
      let folded = NameSearch.fold(recording.name).unicodeScalars
      key = String(String.UnicodeScalarView(folded.prefix(255)))
    case .duration: key = "\(recording.format.duration ?? -1)"
    }
  }

  /// Adds to a filter what of a tenant's, or with nil of all, comes after the place.
  func add(to filter: inout Filter, in order: RecordingOrder, of tenant: Tenant?) {
    let comparison = order.isAscending ? ">" : "<"
    let both = "(\(order.column), recordings.id)"
    switch (order.key, key, key.flatMap(Double.init)) {
    case (.created, _, _): filter.add("recordings.id \(comparison) ?", id.text)
    case (.name, let name?, _): filter.add("\(both) \(comparison) (?, ?)", name, id.text)
    case (.duration, _, let seconds?): filter.add("\(both) \(comparison) (?, ?)", seconds, id.text)
    default:
      let row = Filter(id: id.text, of: tenant)
      let place = "(SELECT \(order.column), recordings.id FROM recordings\(row.text))"
      filter.add("\(both) \(comparison) \(place)", adding: row.arguments)
    }
  }
}
