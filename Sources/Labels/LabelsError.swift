/// Why a file can't be read as labels.
package struct LabelsError: Error, Equatable, CustomStringConvertible {
  /// What is wrong.
  package let fault: LabelsFault
  /// The byte of the text where it is.
  let offset: Int
  private let text: [UInt8]

  /// Creates an error at the byte `offset` of a text in UTF-8. O(1), because a file may have millions of faults.
  init(_ fault: LabelsFault, at offset: Int, in text: [UInt8]) {
    (self.fault, self.offset, self.text) = (fault, offset, text)
  }

  /// Where it is. O(n).
  package var position: TextPosition {
    var walk = TextWalk(text)
    return walk.advance(to: offset)
  }

  /// The fault and the byte where it is, without the text.
  package var description: String { "\(fault) at byte \(offset)" }

  /// Whether both say the same.
  package static func == (a: Self, b: Self) -> Bool { a.fault == b.fault && a.position == b.position }

  /// Returns the positions of errors in one text, in their order in the text. O(n).
  static func inOrder(_ errors: [LabelsError]) -> [(position: TextPosition, fault: LabelsFault)] {
    guard let first = errors.first else { return [] }
    var walk = TextWalk(first.text)
    return errors.sorted { $0.offset < $1.offset }.map { (walk.advance(to: $0.offset), $0.fault) }
  }
}

/// What is wrong at a place in a file. `words` says it in a sentence.
package enum LabelsFault: Error, Equatable {
  /// A NUL, as in a binary file or UTF-16 without a byte order mark.
  case notText
  /// The content is none of the formats.
  case unknownFormat
  /// The content is in another format, of this name.
  case unreadFormat(String)
  case missingHeader
  /// A line that has no timestamps where the format needs them.
  case missingTimes(LabelFormat)
  case badTime
  case negativeTime
  case timeTooLarge
  case endBeforeStart
  /// An offset moves the label before the recording.
  case endsBeforeZero
  /// The lower frequency is above the higher one.
  case bandUpsideDown
  case wordOutsideLabel
  case wordsRunBackward
  case tagsTooDeep(limit: Int)
  case tooManyLabels(limit: Int)
  case tooManyWords(limit: Int)
  /// Bytes of all texts.
  case tooMuchText(limit: Int)
  /// Bytes of one text.
  case textTooLong(limit: Int)

  case malformedXML
  case xmlTooDeep(limit: Int)
  case xmlHasDocumentType
  case malformedJSON
  case jsonTooDeep(limit: Int)
  case missingMember(String)
  case unknownMember(String, known: [String])
  case repeatedMember(String)
  /// The value of a member has another type than this.
  case wrongType(expected: String)
}

/// A place in a text file, for people.
package struct TextPosition: Equatable, Sendable {
  /// Counted from 1.
  package let line: Int
  /// In characters (code points) of the line, counted from 1.
  package let column: Int
}

/// Counts lines and columns of a text in UTF-8, from its start on.
private struct TextWalk {
  private let bytes: [UInt8]
  private var (line, column, position) = (1, 1, 0)

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Returns the position of a byte, which must not precede that of the call before.
  mutating func advance(to offset: Int) -> TextPosition {
    let offset = min(offset, bytes.count)
    while position < offset {
      let byte = bytes[position]
      position += 1
      if byte == ASCII.lineFeed || byte == ASCII.carriageReturn {
        let isPair = byte == ASCII.carriageReturn && position < offset && bytes[position] == ASCII.lineFeed
        if isPair { position += 1 }
        (line, column) = (line + 1, 1)
      } else if byte & 0xC0 != 0x80 {
        column += 1
      }
    }
    return TextPosition(line: line, column: column)
  }
}

extension LabelsError {
  /// A sentence that says what is wrong, where, and what would be right.
  package var words: String { "Line \(position.line), column \(position.column): \(fault.words)" }
}

extension LabelsFault {
  /// A sentence that says what is wrong and what would be right.
  package var words: String {
    switch self {
    case .notText: "a NUL byte; send text, in UTF-8 if possible."
    case .unknownFormat:
      "the content is none of \(LabelFormat.readable.map(\.rawValue).joined(separator: ", ")); name it with “format”."
    case .unreadFormat(let name): "this is \(name), which is not read."
    case .missingHeader: "a WebVTT file begins with “WEBVTT”."
    case .missingTimes(let format): "this line must have times, as in “\(format.exampleLine)”."
    case .badTime: "this is not a time; write hours:minutes:seconds, or seconds, as the format has them."
    case .negativeTime: "a time must be 0 or later."
    case .timeTooLarge: "a time must be at most \(MediaTime.limit.microseconds / 1_000_000) s."
    case .endBeforeStart: "the end is before the start."
    case .endsBeforeZero: "with the offset of the file, this ends before the recording begins."
    case .bandUpsideDown: "the highest frequency is below the lowest one."
    case .wordOutsideLabel: "the word is outside its label; its times must be within those of the label."
    case .wordsRunBackward: "the words run backward; each must begin when the one before does, or later."
    case .tagsTooDeep(let limit): "tags are nested more than \(limit) deep."
    case .tooManyLabels(let limit): "a track has at most \(limit) labels."
    case .tooManyWords(let limit): "a track has at most \(limit) words with times."
    case .tooMuchText(let limit): "the texts of a track have at most \(limit) bytes."
    case .textTooLong(let limit): "a text has at most \(limit) bytes."
    case .malformedXML: "this is not valid XML."
    case .xmlTooDeep(let limit): "elements are nested more than \(limit) deep."
    case .xmlHasDocumentType: "a document type (“<!DOCTYPE”) is not read; leave it out."
    case .malformedJSON: "this is not valid JSON."
    case .jsonTooDeep(let limit): "arrays and objects are nested more than \(limit) deep."
    case .missingMember(let name): "the object has no member “\(name)”."
    case .unknownMember(let name, let known):
      "there is no member “\(name)”. Known: \(known.joined(separator: ", "))."
    case .repeatedMember(let name): "the object has “\(name)” more than once."
    case .wrongType(let expected): "this value must be \(expected)."
    }
  }
}

extension LabelsFault {
  /// Whether only one cue is bad, so that the others can be used. A member that the format doesn't know isn't: it may
  /// be misspelled in all of them.
  var isOfOneCue: Bool {
    switch self {
    case .missingTimes, .badTime, .negativeTime, .timeTooLarge, .endBeforeStart, .endsBeforeZero, .bandUpsideDown,
      .wordOutsideLabel, .wordsRunBackward, .tagsTooDeep, .textTooLong, .missingMember, .wrongType:
      true
    case .notText, .unknownFormat, .unreadFormat, .missingHeader, .tooManyLabels, .tooManyWords, .tooMuchText,
      .malformedXML, .xmlTooDeep, .xmlHasDocumentType, .malformedJSON, .jsonTooDeep, .unknownMember, .repeatedMember:
      false
    }
  }

  /// Names the fault to programs.
  package var code: String {
    switch self {
    case .notText: "not_text"
    case .unknownFormat: "unknown_format"
    case .unreadFormat: "unread_format"
    case .missingHeader: "missing_header"
    case .missingTimes: "missing_times"
    case .badTime: "bad_time"
    case .negativeTime: "negative_time"
    case .timeTooLarge: "time_too_large"
    case .endBeforeStart: "end_before_start"
    case .endsBeforeZero: "ends_before_zero"
    case .bandUpsideDown: "band_upside_down"
    case .wordOutsideLabel: "word_outside_label"
    case .wordsRunBackward: "words_run_backward"
    case .tagsTooDeep: "tags_too_deep"
    case .tooManyLabels: "too_many_labels"
    case .tooManyWords: "too_many_words"
    case .tooMuchText: "too_much_text"
    case .textTooLong: "text_too_long"
    case .malformedXML: "malformed_xml"
    case .xmlTooDeep: "xml_too_deep"
    case .xmlHasDocumentType: "xml_has_document_type"
    case .malformedJSON: "malformed_json"
    case .jsonTooDeep: "json_too_deep"
    case .missingMember: "missing_member"
    case .unknownMember: "unknown_member"
    case .repeatedMember: "repeated_member"
    case .wrongType: "wrong_type"
    }
  }
}
