/// The ID of the media that a catalog describes, so that they aren't mistaken for others. They have it in a file or an
/// object `media-id`.
package struct MediaID: Sendable, Equatable {
  /// The ID.
  package let text: String

  /// Makes an ID for new media.
  package init() { text = UUIDv7().text }

  /// Reads the content of `media-id`. Fails if it isn't one.
  package init?(_ content: [UInt8]) {
    guard let id = UUIDv7(String(decoding: content.prefix(36), as: UTF8.self)) else { return nil }
    text = id.text
  }

  /// The content of `media-id`.
  package var content: [UInt8] { Array("\(text)\n".utf8) }
}
