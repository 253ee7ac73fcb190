/// A format of timed text.
package enum LabelFormat: String, CaseIterable, Sendable {
  case json, vtt, srt, lrc, audacity, whisper, chapters
  /// Whisper's table.
  case tsv
  /// The table of whisper.cpp.
  case csv
  /// Podcasting 2.0's JSON transcripts.
  case transcript
  /// Podlove Simple Chapters.
  case podlove
  /// Lists of times and titles.
  case times
  case ttml, ass, sbv

  /// The formats that can be read: all.
  package static let readable = allCases
  /// The formats that can be written.
  package static let writable: [LabelFormat] = [.json, .vtt, .srt, .lrc, .audacity, .chapters]

  /// The media type of files.
  package var mediaType: String {
    switch self {
    case .json, .whisper, .transcript: "application/json"
    case .vtt: "text/vtt"
    case .srt: "application/x-subrip"
    case .lrc: "text/x-lrc"
    case .audacity, .tsv: "text/tab-separated-values"
    case .chapters: "application/json+chapters"
    case .csv: "text/csv"
    case .podlove: "application/xml"
    case .times: "text/plain"
    case .ttml: "application/ttml+xml"
    case .ass: "text/x-ssa"
    case .sbv: "text/x-sbv"
    }
  }

  /// The format that a media type alone decides. Other types, and all JSON, are identified by their content.
  package init?(deciding mediaType: String) {
    let found = [LabelFormat.vtt, .srt, .ttml, .ass].first { $0.mediaType == mediaType }
    guard let found else { return nil }
    self = found
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
    case .json, .whisper, .chapters, .transcript: "{\"start\":1,\"end\":2.5}"
    case .tsv: "1000<tab>2500<tab>text"
    case .csv: "1000,2500,\"text\""
    case .podlove: "<psc:chapter start=\"00:00:01.000\" title=\"…\"/>"
    case .times: "00:01:30 Title"
    case .ttml: "<p begin=\"00:00:01.000\" end=\"00:00:02.500\">"
    case .ass: "Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,text"
    case .sbv: "0:00:01.000,0:00:02.500"
    }
  }
}

extension LabelFile {
  /// Parses a file. Without a format, its content decides.
  ///
  /// `charset`: the encoding that the client names. `duration`: of the recording, if it is known; the last line of
  /// formats without ends lasts until there at most. Times are rounded to microseconds and texts brought to their
  /// normal form. Unsorted labels are sorted by start; those that start together keep their order. A bad cue is left
  /// out; if nothing is left then, or if `isStrict`, throws where the first one is. O(n); takes up to 60 MB for the
  /// greatest files, besides the labels themselves.
  package init(
    parsing bytes: [UInt8], as format: LabelFormat? = nil, charset: String? = nil, duration: MediaTime? = nil,
    isStrict: Bool = false
  ) throws(LabelsError) {
    let source = try SourceText(bytes, charset: charset)
    let kind: LabelFormat
    if let format { kind = format } else { kind = try source.identify() }
    switch kind {
    case .json: self = try LabelsJSON.parse(source)
    case .whisper, .transcript: self = try WhisperJSON.parse(source)
    case .chapters: self = try PodcastChapters.parse(source, duration: duration)
    case .vtt: self = try WebVTT.parse(source)
    case .srt, .sbv: self = try SubRip.parse(source, kind)
    case .lrc: self = try LRC.parse(source, duration: duration)
    case .audacity: self = try AudacityLabels.parse(source)
    case .tsv, .csv: self = try WhisperTable.parse(source, kind)
    case .podlove: self = try PodloveChapters.parse(source, duration: duration)
    case .times: self = try TimesAndTitles.parse(source, duration: duration)
    case .ttml: self = try TTML.parse(source, duration: duration)
    case .ass: self = try SubStation.parse(source)
    }
    encoding = source.encoding
    if let first = leftOut.errors.first, isStrict || labels.isEmpty { throw first }
  }
}

extension SourceText {
  /// How files in formats that aren't read begin.
  private static let unread = [
    ("Scenarist_SCC", "SCC"), ("# VobSub", "VobSub"), (";FFMETADATA", "ffmpeg's metadata"),
    ("CHAPTER0", "OGM's chapters"), ("File type = \"ooTextFile", "Praat's TextGrid"), ("FORMAT=", "MPSub"),
    ("SPEAKER ", "RTTM"), ("#,Name,Start", "Reaper's table of regions"), ("Name\tStart\tDuration", "Audition's table"),
    ("//Font select", "Spruce STL"), ("$Font", "Spruce STL"), ("PERFORMER ", "a cue sheet"), ("FILE \"", "a cue sheet"),
    ("REM ", "a cue sheet"),
  ]

  /// Returns the format that the first lines or members belong to.
  fileprivate func identify() throws(LabelsError) -> LabelFormat {
    var lines = TextLines(self)
    if let first = lines.next(), WebVTT.isHeader(bytes[first]) { return .vtt }
    lines = TextLines(self)
    var firstText: Int?
    while lines.number < 100, let range = lines.next() {
      let line = bytes[trimmed(range)]
      guard !line.isEmpty else { continue }
      if firstText == nil {
        firstText = line.startIndex
        if let format = try identify(firstLine: line) { return format }
      }
      if CueTimes.hasArrow(line) { return .srt }
      if CueTimes.isLine(line, .sbv) { return .sbv }
      if LRC.isLine(line) { return .lrc }
      if AudacityLabels.isLine(line) { return .audacity }
      if TimesAndTitles.isLine(line) { return .times }
    }
    throw error(.unknownFormat, at: firstText ?? 0)
  }

  private func identify(firstLine line: ArraySlice<UInt8>) throws(LabelsError) -> LabelFormat? {
    let isNumberNext = line.dropFirst().first.map(ASCII.isDigit) ?? false
    let number = line.dropFirst().prefix(while: ASCII.isDigit)
    let afterNumber = line[number.endIndex...]
    switch line.first {
    case ASCII.openBrace:
      guard isNumberNext else { return try JSONKind.identify(self) }
      throw error(.unreadFormat("MicroDVD"), at: line.startIndex)
    case ASCII.less: return try XMLKind.identify(self)
    case ASCII.openBracket where isNumberNext && afterNumber.starts(with: "][".utf8):
      throw error(.unreadFormat("MPL2"), at: line.startIndex)
    case ASCII.openBracket where normalLine(line.prefix(32)).lowercased() == "[script info]": return .ass
    default: break
    }
    if let format = WhisperTable.format(line) { return format }
    if line.dropFirst(3).starts(with: "STL".utf8) { throw error(.unreadFormat("EBU STL"), at: line.startIndex) }
    if let (_, name) = Self.unread.first(where: { line.starts(with: $0.0.utf8) }) {
      throw error(.unreadFormat(name), at: line.startIndex)
    }
    return nil
  }
}
