import CSndfile
import Glibc

/// Title, artist and the like of a sound file, as far as libsndfile knows of them: nothing is made of the texts, they
/// are handed on as they are. Pictures are not among them.
package struct SoundTags: Sendable, Equatable {
  /// By libsndfile's numbers. The software that wrote the source is not the one that writes the copy.
  private var texts: [Int32: [CChar]] = [:]

  private static let kinds = [
    SF_STR_TITLE, SF_STR_COPYRIGHT, SF_STR_ARTIST, SF_STR_COMMENT, SF_STR_DATE, SF_STR_ALBUM, SF_STR_LICENSE,
    SF_STR_TRACKNUMBER, SF_STR_GENRE,
  ].map { Int32($0) }
  /// Bytes of one text: more is no title.
  private static let lengthLimit = 4096

  /// None.
  package init() {}

  /// Those of the file at `path`; none where it can't be opened as it is.
  package init(path: String) {
    guard let file = try? SndfileHandle(reading: path) else { return }
    for kind in Self.kinds {
      guard let text = file.text(kind), text.count <= Self.lengthLimit else { continue }
      texts[kind] = text
    }
  }

  /// Puts them into a file that has no sound yet; what its container can't hold is left out.
  func write(to file: borrowing SndfileHandle) {
    for kind in Self.kinds {
      if let text = texts[kind] { file.setText(kind, text) }
    }
  }
}
