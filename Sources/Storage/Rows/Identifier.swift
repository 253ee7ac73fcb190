/// The name of a recording; also that of its folder.
package typealias RecordingID = Identifier<Recording>

/// The name of a job; also that of its work folder.
package typealias JobID = Identifier<Job>

/// A UUIDv7: hard to guess, and newest sorts last, as a value and as text.
///
/// `Entity` only keeps the ids of recordings and of jobs from being taken for each other.
package struct Identifier<Entity>: Hashable, Comparable, Sendable, CustomStringConvertible {
  private let value: UUIDv7

  /// A new id, above every id that this process has made before.
  package init() {
    value = UUIDv7()
  }

  /// The id written as `text`: nil unless it is 36 characters, lower case, version 7.
  ///
  /// What passes is safe as the name of a file.
  package init?(_ text: String) {
    guard let value = UUIDv7(text) else { return nil }
    self.value = value
  }

  /// 36 characters, lower case: "0199c0de-0000-7000-8000-000000000000".
  package var text: String { value.text }

  /// The same as `text`.
  package var description: String { text }

  /// The order in which ids were made.
  package static func < (a: Self, b: Self) -> Bool { a.value < b.value }
}

extension Identifier: Codable {
  /// Reads the text of an id.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let id = Self(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a lower-case UUIDv7")
    }
    self = id
  }

  /// Writes the text of the id.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}
