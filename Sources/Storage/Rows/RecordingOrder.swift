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
  /// What it is sorted by; nil if that is the ID.
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

  /// Whether the place can be one in this order.
  package func fits(_ order: RecordingOrder) -> Bool {
    switch order.key {
    case .created: key == nil
    case .name: key != nil
    case .duration: key.flatMap(Double.init)?.isFinite == true
    }
  }

  /// Adds to a filter what comes after the place. It must fit the order.
  func add(to filter: inout Filter, in order: RecordingOrder) {
    let comparison = order.isAscending ? ">" : "<"
    switch order.key {
    case .created: filter.add("recordings.id \(comparison) ?", id.text)
    case .name: filter.add("(\(order.column), recordings.id) \(comparison) (?, ?)", key ?? "", id.text)
    case .duration:
      filter.add("(\(order.column), recordings.id) \(comparison) (?, ?)", key.flatMap(Double.init) ?? -1, id.text)
    }
  }
}
