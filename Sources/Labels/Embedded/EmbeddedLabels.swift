import Terms

/// A track of labels found inside a sound or video file.
package struct EmbeddedTrack: Hashable, Sendable {
  /// What the labels are.
  package enum Kind: String, CaseIterable, Sendable {
    case labels, transcript, lyrics, chapters
  }

  /// What the labels are.
  package var kind: Kind
  /// The name that the file gives them, of at most 200 bytes.
  package var name: String?
  /// The language that the file names, a valid tag such as “eng”.
  package var language: String?
  /// The labels, sorted by start; not empty.
  package var labels: [Label]
}

/// The tracks found inside a sound or video file, and what couldn't be read.
package struct EmbeddedLabels: Equatable, Sendable {
  /// At most `trackLimit`, in the order of the file.
  package internal(set) var tracks: [EmbeddedTrack] = []
  /// What was left out, each kind of fault once.
  package private(set) var faults: [EmbeddedFault] = []

  /// Maximum number of tracks of a file.
  package static let trackLimit = 64
  /// Maximum length of the tracks in JSON, in bytes: that of one uploaded file of labels.
  package static let documentLimit = LabelLimits.bytes
  /// Maximum length of a name, in bytes.
  private static let nameLimit = 200

  /// What the file says of itself. Not part of the document.
  package var tags = FileTags()
  /// Whether the cover is the front.
  var hasFront = false
  private var labelCount = 0
  private var wordCount = 0

  /// Creates an empty value.
  package init() {}

  /// Adds a fault, unless it is known.
  mutating func note(_ fault: EmbeddedFault) {
    if !faults.contains(fault) { faults.append(fault) }
  }

  /// Adds a track, unless it has no labels. Sorts them. All tracks of a file together have no more labels and words
  /// than one uploaded file; a track that exceeds this is left out. Texts that are too long are cut.
  mutating func add(
    _ part: EmbeddedPart, _ kind: EmbeddedTrack.Kind, name: String? = nil, language: String? = nil, _ labels: [Label]
  ) {
    guard !labels.isEmpty else { return }
    let words = labels.reduce(0) { $0 + $1.words.count }
    guard tracks.count < Self.trackLimit, labelCount + labels.count <= LabelLimits.labels,
      wordCount + words <= LabelLimits.words
    else { return note(.tooMuch(part)) }
    (labelCount, wordCount) = (labelCount + labels.count, wordCount + words)
    var labels = labels
    for index in labels.indices where labels[index].isTooLong {
      labels[index] = labels[index].withShortTexts
      note(.tooLong(part))
    }
    let name =
      name.map { Label.cut(normalLine(Array($0.utf8.prefix(LabelLimits.textBytes))[...]), to: Self.nameLimit) } ?? ""
    let tag = language?.lowercased()
    tracks.append(
      EmbeddedTrack(
        kind: kind, name: name.isEmpty ? nil : name,
        language: tag.flatMap { LanguageTag.isValid($0) && !LanguageTag.isUnknown($0) ? $0 : nil },
        labels: LabelCollector.sorted(labels)))
  }
}

/// A kind of timed text in a file.
package enum EmbeddedPart: String, Sendable {
  case chapters, lyrics, subtitles
  /// Of WAV.
  case cuePoints = "cue points"
  /// SYLT frames of ID3.
  case timedLyrics = "timed lyrics"
  /// ID3 tags and Vorbis comments as a whole.
  case tags
}

/// Something in a file that couldn't be read as labels.
package enum EmbeddedFault: Equatable, Sendable {
  /// The bytes don't have the form that their format demands.
  case damaged(EmbeddedPart)
  /// Compressed, encrypted, or with times that count what the file doesn't have.
  case unsupported(EmbeddedPart)
  /// The labels contradict each other, or have invalid times.
  case invalid(EmbeddedPart, LabelsFault)
  /// More than the limits allow.
  case tooMuch(EmbeddedPart)
  /// A text is longer than the limit, and was cut.
  case tooLong(EmbeddedPart)

  /// A sentence for people.
  package var words: String {
    switch self {
    case .damaged(let part): "The \(part.rawValue) inside the file are damaged; what can be read of them is used."
    case .unsupported(let part):
      "Some \(part.rawValue) inside the file are left out: they are compressed or encrypted, or their times "
        + "can't be used."
    case .invalid(let part, let fault): "Some \(part.rawValue) inside the file are left out: \(fault.words)"
    case .tooMuch(let part):
      "The file has more \(part.rawValue) inside than the limits of \(EmbeddedLabels.trackLimit) tracks, "
        + "\(LabelLimits.labels) labels and \(LabelLimits.bytes >> 20) MiB allow; the rest is left out."
    case .tooLong(let part):
      "Some \(part.rawValue) inside the file are longer than \(LabelLimits.textBytes >> 10) KiB; they are cut to that."
    }
  }
}

/// Tags of languages.
package enum LanguageTag {
  /// Whether the text has the form of a language tag (RFC 5646): a language of letters, then subtags.
  package static func isValid(_ text: String) -> Bool {
    let tags = text.utf8.split(separator: ASCII.minus, omittingEmptySubsequences: false)
    guard text.utf8.count <= 35, let first = tags.first, (2...8).contains(first.count),
      first.allSatisfy(ASCII.isLetter)
    else { return false }
    return tags.dropFirst().allSatisfy { tag in
      (1...8).contains(tag.count) && tag.allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) }
    }
  }

  /// Whether a tag in lower case stands for a language that isn't known: ISO 639-2's, or ID3's.
  static func isUnknown(_ tag: String) -> Bool { ["und", "xxx", "mis", "zxx"].contains(tag) }
}
