import GRDB

extension NameSearch {
  /// The SQL function `recording_number(id)`: `RecordingID.number`, or NULL if the text is no ID.
  static let number = DatabaseFunction("recording_number", argumentCount: 1, pure: true) { values in
    String.fromDatabaseValue(values[0]).flatMap { RecordingID($0)?.number }
  }
}
