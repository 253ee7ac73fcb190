@testable import Labels

extension MediaTime {
  /// Milliseconds.
  static func ms(_ milliseconds: Int64) -> MediaTime { MediaTime(clamping: milliseconds * 1000) }
}

extension Label {
  /// A label with times in milliseconds.
  init(_ start: Int64, _ end: Int64, _ text: String, _ speaker: String? = nil, words: [TimedWord] = []) {
    self.init(start: .ms(start), end: .ms(end), text: text, speaker: speaker, words: words)
  }

  /// A label with details, of a place in Austin.
  init(
    _ start: Int64, _ end: Int64, _ text: String, image: String? = nil, url: String? = nil, place: String? = nil,
    isHidden: Bool = false, minHz: Double? = nil, maxHz: Double? = nil
  ) {
    self.init(start, end, text)
    (details.image, details.url, details.isHidden) = (image, url, isHidden)
    (details.minHz, details.maxHz) = (minHz, maxHz)
    details.location = place.map { LabelLocation(name: $0, geo: "geo:30,97") }
  }
}

extension TimedWord {
  /// A word with times in milliseconds.
  init(_ start: Int64, _ end: Int64, _ text: String) { self.init(start: .ms(start), end: .ms(end), text: text) }
}

/// Parses a text in UTF-8.
func parse(_ text: String, _ format: LabelFormat? = nil, duration: MediaTime? = nil) throws -> [Label] {
  try LabelFile(parsing: Array(text.utf8), as: format, duration: duration).labels
}

func written(_ labels: [Label], _ format: LabelFormat) -> String {
  String(decoding: WrittenLabels(labels, as: format).bytes, as: UTF8.self)
}
