/// A format of timed text.
package enum LabelFormat: String, CaseIterable, Sendable {
  case json, vtt, srt, lrc, audacity, whisper, chapters

  /// The formats that can be read: all.
  package static let readable = allCases
  /// The formats that can be written: all but the output of a speech recognizer.
  package static let writable = allCases.filter { $0 != .whisper }

  /// The media type of written files.
  package var mediaType: String {
    switch self {
    case .json, .whisper: "application/json"
    case .vtt: "text/vtt"
    case .srt: "application/x-subrip"
    case .lrc: "text/x-lrc"
    case .audacity: "text/tab-separated-values"
    case .chapters: "application/json+chapters"
    }
  }

  /// The format that a media type alone decides. Other types, and all JSON, are identified by their content.
  package init?(deciding mediaType: String) {
    switch mediaType {
    case "text/vtt": self = .vtt
    case "application/x-subrip": self = .srt
    default: return nil
    }
  }

  /// The format that a file's name says it has: by its ending, without the dot. Those of JSON and `.txt` say it only
  /// for files that are written.
  package init?(ending: String) {
    switch ending.lowercased() {
    case "json": self = .json
    case "vtt": self = .vtt
    case "srt": self = .srt
    case "lrc": self = .lrc
    case "txt", "tsv": self = .audacity
    default: return nil
    }
  }

  /// A valid line with times.
  var exampleLine: String {
    switch self {
    case .vtt: "00:00:01.000 --> 00:00:02.500"
    case .srt: "00:00:01,000 --> 00:00:02,500"
    case .lrc: "[00:01.00]text"
    case .audacity: "1.0<tab>2.5<tab>text"
    case .json, .whisper, .chapters: "{\"start\":1,\"end\":2.5}"
    }
  }
}

extension LabelFile {
  /// Parses a file. Without a format, its content decides.
  ///
  /// `duration`: of the recording, if it is known; the last line of formats without ends lasts until there at most.
  /// Times are rounded to microseconds and texts brought to their normal form. Unsorted labels are sorted by start;
  /// those that start together keep their order. A bad cue is left out; if nothing is left then, or if `isStrict`,
  /// throws where the first one is. O(n); takes up to 60 MB for the greatest files, besides the labels themselves.
  package init(
    parsing bytes: [UInt8], as format: LabelFormat? = nil, duration: MediaTime? = nil, isStrict: Bool = false
  ) throws(LabelsError) {
    let source = try SourceText(bytes)
    let kind: LabelFormat
    if let format { kind = format } else { kind = try source.identify() }
    switch kind {
    case .json: self = try LabelsJSON.parse(source)
    case .whisper: self = try WhisperJSON.parse(source)
    case .chapters: self = try PodcastChapters.parse(source, duration: duration)
    case .vtt: self = try WebVTT.parse(source)
    case .srt: self = try SubRip.parse(source)
    case .lrc: self = try LRC.parse(source, duration: duration)
    case .audacity: self = try AudacityLabels.parse(source)
    }
    if let first = leftOut.errors.first, isStrict || labels.isEmpty { throw first }
  }
}

extension SourceText {
  /// Returns the format that the first lines or members belong to.
  fileprivate func identify() throws(LabelsError) -> LabelFormat {
    var lines = TextLines(self)
    if let first = lines.next(), WebVTT.isHeader(bytes[first]) { return .vtt }
    lines = TextLines(self)
    var firstText: Int?
    while lines.number < 100, let line = lines.next() {
      let text = trimmed(line)
      guard let first = text.first else { continue }
      if firstText == nil {
        firstText = first
        if bytes[first] == ASCII.openBrace { return try JSONKind.identify(self) }
      }
      if CueTimes.hasArrow(bytes[text]) { return .srt }
      if LRC.isLine(bytes[text]) { return .lrc }
      if AudacityLabels.isLine(bytes[text]) { return .audacity }
    }
    throw error(.unknownFormat, at: firstText ?? 0)
  }
}
