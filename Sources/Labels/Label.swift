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
  /// What names it in its track, as long as that is there; nil if it hasn't been given one.
  package var id: String?
  /// In a box, because few of up to 200,000 labels have any.
  private var boxedDetails: Boxed?

  /// Creates a label.
  package init(start: MediaTime, end: MediaTime, text: String, speaker: String? = nil, words: [TimedWord] = []) {
    (self.start, self.end, self.text, self.speaker, self.words) = (start, end, text, speaker, words)
  }

  private indirect enum Boxed: Hashable {
    case details(LabelDetails)
  }

  /// What chapters and marks in a spectrogram have besides a text.
  package var details: LabelDetails {
    get { if case .details(let details) = boxedDetails { details } else { LabelDetails() } }
    set { boxedDetails = newValue == LabelDetails() ? nil : .details(newValue) }
  }

  /// Returns what a recording that is cut to a window has of the label, with times from the window's start; nil if the
  /// label doesn't overlap the window. The text stays whole; words outside the window are left out.
  package func cut(from start: MediaTime, to end: MediaTime) -> Label? {
    guard let (first, last) = Self.part(of: self.start, self.end, from: start, to: end) else { return nil }
    let words = words.compactMap { word in
      Self.part(of: word.start, word.end, from: start, to: end).map { TimedWord(start: $0, end: $1, text: word.text) }
    }
    var part = Label(start: first, end: last, text: text, speaker: speaker, words: words)
    part.boxedDetails = boxedDetails
    return part
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

/// What chapters and marks in a spectrogram have besides a text.
package struct LabelDetails: Hashable, Sendable {
  /// The address of a picture.
  package var image: String?
  /// The address of a page.
  package var url: String?
  /// The place that a chapter is about.
  package var location: LabelLocation?
  /// Whether players don't list the chapter.
  package var isHidden = false
  /// The frequencies that a mark covers, in Hz, from 0, to a millionth; nil if it has no such limit.
  package var minHz, maxHz: Double?

  /// Creates details of nothing.
  package init() {}

  var texts: [String] { [image, url, location?.name, location?.geo, location?.osm].compactMap(\.self) }
}

/// A place of the world, as Podcasting 2.0 describes it.
package struct LabelLocation: Hashable, Sendable {
  /// Its name for people.
  package var name: String?
  /// A `geo:` URI (RFC 5870).
  package var geo: String?
  /// An object of OpenStreetMap, such as `R113314`.
  package var osm: String?
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
  /// Maximum length of a label's text, of its speaker, and of each word, in bytes.
  package static let textBytes = 64 << 10
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
  /// The encoding in which the text was, by its name on the web.
  package internal(set) var encoding = "UTF-8"
  /// The cues that are bad.
  package internal(set) var leftOut = LeftOutCues()

  /// Creates the content of a file.
  package init(labels: [Label] = [], language: String? = nil, title: String? = nil) {
    (self.labels, self.language, self.title) = (labels, language, title)
  }
}

/// The cues of a file that are bad and no labels.
package struct LeftOutCues: Equatable, Sendable {
  /// Number of them.
  package private(set) var count = 0
  /// What is wrong with the first of them.
  private(set) var errors: [LabelsError] = []

  /// How many are named.
  private static let namedCount = 100

  /// Adds a cue, or throws its error if more is wrong than this one.
  mutating func add(_ error: LabelsError) throws(LabelsError) {
    guard error.fault.isOfOneCue else { throw error }
    count += 1
    if errors.count < Self.namedCount { errors.append(error) }
  }

  /// Where the first hundred are, and what is wrong with them. O(n).
  package var named: [(position: TextPosition, fault: LabelsFault)] { LabelsError.inOrder(errors) }
}
