/// A stretch of a recording with a text: a line of a transcript or of lyrics, a chapter, or an editor's mark.
package struct Label: Hashable, Sendable {
  /// Where it begins and ends; a mark at one point ends where it begins.
  package var start, end: MediaTime
  /// The text in its normal form (see `normalText`): one or more lines without blanks at their ends.
  package var text: String
  /// Who speaks; nil if that isn't known.
  package var speaker: String?
  /// The timed words or syllables, in order and within the label; empty if there are none.
  package var words: [TimedWord]

  /// Creates a label.
  package init(start: MediaTime, end: MediaTime, text: String, speaker: String? = nil, words: [TimedWord] = []) {
    (self.start, self.end, self.text, self.speaker, self.words) = (start, end, text, speaker, words)
  }

  /// Returns what a recording that is cut to a window has of the label, with times from the window's start; nil if the
  /// label doesn't overlap the window. The text stays whole; words outside the window are left out.
  package func cut(from start: MediaTime, to end: MediaTime) -> Label? {
    guard let (first, last) = Self.part(of: self.start, self.end, from: start, to: end) else { return nil }
    let words = words.compactMap { word in
      Self.part(of: word.start, word.end, from: start, to: end).map { TimedWord(start: $0, end: $1, text: word.text) }
    }
    return Label(start: first, end: last, text: text, speaker: speaker, words: words)
  }

  private static func part(
    of first: MediaTime, _ last: MediaTime, from start: MediaTime, to end: MediaTime
  ) -> (MediaTime, MediaTime)? {
    let overlaps = first == last ? start <= first && first < end : first < end && last > start
    guard overlaps else { return nil }
    let offset = -start.microseconds
    return (max(first, start).shifted(by: offset), min(last, end).shifted(by: offset))
  }
}

/// A word or syllable of a label with its own time.
package struct TimedWord: Hashable, Sendable {
  /// Where it begins and ends.
  package var start, end: MediaTime
  /// The text in its normal form, not empty.
  package var text: String

  /// Creates a word.
  package init(start: MediaTime, end: MediaTime, text: String) {
    (self.start, self.end, self.text) = (start, end, text)
  }
}

/// The limits of one track.
package enum LabelLimits {
  /// Maximum size of a file, in bytes.
  package static let bytes = 16 << 20
  /// Maximum number of labels.
  package static let labels = 200_000
  /// Maximum number of words in all labels.
  package static let words = 2_000_000
  /// Maximum depth of nested tags in one text, and of nested arrays and objects in JSON.
  package static let depth = 64
}

/// What a file of labels contains.
package struct LabelFile: Equatable, Sendable {
  /// The labels, sorted by start.
  package var labels: [Label]
  /// The language that the file names, such as “en”.
  package var language: String?
  /// The title that the file names.
  package var title: String?

  /// Creates the content of a file.
  package init(labels: [Label] = [], language: String? = nil, title: String? = nil) {
    (self.labels, self.language, self.title) = (labels, language, title)
  }
}
