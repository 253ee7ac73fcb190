/// What a sound or video file says of itself. The texts come from untrusted files.
package struct FileTags: Codable, Sendable, Hashable {
  /// The texts, each of at most `textLimit` bytes.
  package var title, artist, album, albumArtist, composer, date, track, genre, comment, language, encoder: String?
  /// Frames from midnight to the recording's start.
  package var timeReference: Int64?
  /// The picture of the front, or else the first one.
  package var cover: FileCover?
  /// The names of other tags, for telling what a copy lacks; nil if there are none.
  package private(set) var others: [String]?

  /// Maximum length of a text, in bytes.
  package static let textLimit = 4096

  /// Maximum number of other names, and their length in bytes.
  private static let (nameCount, nameLimit) = (64, 40)

  /// Creates tags of nothing.
  package init() {}

  /// Adds the name of another tag; characters that aren't printable ASCII become dots.
  package mutating func note(_ name: String) {
    let plain = name.unicodeScalars.prefix(Self.nameLimit).map { (" "..."~").contains($0) ? $0 : "." }
    let name = String(String.UnicodeScalarView(plain))
    guard !name.isEmpty, others?.count ?? 0 < Self.nameCount, others?.contains(name) != true else { return }
    others = (others ?? []) + [name]
  }

  /// Whether a service could have stored this of a file of this length.
  package func isPlausible(fileBytes: Int64) -> Bool {
    let texts = [title, artist, album, albumArtist, composer, date, track, genre, comment, language, encoder]
    return texts.allSatisfy { ($0?.utf8.count ?? 0) <= Self.textLimit } && timeReference ?? 0 >= 0
      && cover?.isPlausible(fileBytes: fileBytes) ?? true && others?.count ?? 0 <= Self.nameCount
      && others?.allSatisfy { $0.utf8.count <= Self.nameLimit } ?? true
  }

  /// Whether there is nothing to show but perhaps a cover.
  package var isEmpty: Bool {
    var shown = self
    (shown.cover, shown.others) = (nil, nil)
    return shown == FileTags()
  }
}

/// A picture inside a file, where it can be read without knowing the file's format.
package struct FileCover: Codable, Sendable, Hashable {
  /// Its media type, one of `types`.
  package var type: String
  /// Where its bytes begin in the file.
  package var offset: Int64
  /// The number of its bytes, 1 or more.
  package var bytes: Int64
  /// Its size in pixels.
  package var width, height: Int

  /// The media types of pictures.
  package static let types = ["image/jpeg", "image/png", "image/gif"]

  fileprivate func isPlausible(fileBytes: Int64) -> Bool {
    Self.types.contains(type) && offset >= 0 && bytes > 0 && bytes <= fileBytes && offset <= fileBytes - bytes
      && width > 0 && height > 0
  }

  /// Creates a value from its parts.
  package init(type: String, offset: Int64, bytes: Int64, width: Int, height: Int) {
    (self.type, self.offset, self.bytes, self.width, self.height) = (type, offset, bytes, width, height)
  }
}
