import CSndfile
import Glibc

/// A sound file's title, artist, and other text tags that libsndfile supports, copied without interpretation. Pictures
/// aren't included.
package struct SoundTags: Sendable, Equatable {
  /// By libsndfile's numbers. The software tag is omitted, because different software writes the copy.
  private var texts: [Int32: [CChar]] = [:]

  private static let kinds = [
    SF_STR_TITLE, SF_STR_COPYRIGHT, SF_STR_ARTIST, SF_STR_COMMENT, SF_STR_DATE, SF_STR_ALBUM, SF_STR_LICENSE,
    SF_STR_TRACKNUMBER, SF_STR_GENRE,
  ].map { Int32($0) }
  /// Maximum size of one text, in bytes; a longer one isn't a title.
  private static let lengthLimit = 4096

  /// Creates an empty set of tags.
  package init() {}

  /// Reads the tags of the file at `path`. The result is empty if libsndfile can't open it.
  package init(path: String) {
    guard let file = try? SndfileHandle(reading: path) else { return }
    for kind in Self.kinds {
      guard let text = file.text(kind), text.count <= Self.lengthLimit else { continue }
      texts[kind] = text
    }
  }

  /// Writes the tags to a file that has no samples yet; its container may drop some.
  func write(to file: borrowing SndfileHandle) {
    for kind in Self.kinds {
      if let text = texts[kind] { file.setText(kind, text) }
    }
  }
}
