/// Changes of single labels of a track.
package struct LabelEdit: Equatable, Sendable {
  /// The labels that are added or, if they have an ID, replace the label with that ID, sorted by start.
  package var set: [Label] = []
  /// The IDs of the labels that are removed.
  package var remove: [String] = []

  /// Creates changes of nothing.
  package init() {}

  /// Reads the changes from the members `set` and `remove` of a JSON object, whose other members are skipped. O(n).
  package init(parsing bytes: [UInt8]) throws(LabelsError) { self = try LabelsJSON.edit(SourceText(bytes)) }
}
