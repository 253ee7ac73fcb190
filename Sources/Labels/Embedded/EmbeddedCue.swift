// The content of a subtitle, by its codec:
//
//   S_TEXT/UTF8      the text of a SubRip cue
//   S_TEXT/WEBVTT    the text of a WebVTT cue, whose times count from the cue's start
//   D_WEBVTT/…       identifier LF settings LF text, as ffmpeg writes WebM; times as in a file
//   S_TEXT/ASS       number, layer, style, name, three margins, effect, text: separated by commas
//
//   text of ASS      "\N" and "\n" line breaks, "\h" a blank, "{…}" settings: "\k50", "\K", "\kf" and "\ko" the length
//                    of the next syllable in hundredths of a second, "\p1" to "\p0" a drawing, which is left out

/// A subtitle as labels.
struct EmbeddedCue {
  private(set) var labels: [Label] = []
  private let start, end: MediaTime
  /// Whether the end is known.
  private let hasEnd: Bool

  /// Parses a subtitle. One that ends before the recording begins has no labels. If its words contradict each other,
  /// only its text is used, and `fault` is set.
  init(_ cue: RawCue, _ codec: SubtitleCodec, _ clock: EmbeddedClock, fault: inout LabelsFault?) {
    start = clock.time(cue.start)
    let (sum, overflow) = cue.start.addingReportingOverflow(cue.duration ?? 0)
    hasEnd = cue.duration != nil
    // An end that is given isn't open, however late it is.
    let last = MediaTime(clamping: PodcastChapters.openEnd.microseconds - 1)
    end = hasEnd ? max(start, min(clock.time(overflow ? .max : sum), last)) : PodcastChapters.openEnd
    guard !hasEnd || end > .zero || cue.start >= clock.zero else { return }
    switch codec {
    case .subRip, .ascii: add(cue.content, .srt, from: .zero, &fault)
    case .webvtt: add(cue.content, .vtt, from: .zero, &fault)
    case .webvttSubtitles, .webvttCaptions, .webvttDescriptions, .webvttMetadata:
      let parts = cue.content.split(separator: ASCII.lineFeed, maxSplits: 2, omittingEmptySubsequences: false)
      add(Array(parts.last ?? []), .vtt, from: MediaTime(clamping: cue.start), &fault)
    case .ass, .ssa: addSubStation(cue.content)
    }
  }

  /// Adds the voices of a text. `origin`: the subtitle's start on the clock of the times in it.
  private mutating func add(
    _ content: [UInt8], _ dialect: CueText.Dialect, from origin: MediaTime, _ fault: inout LabelsFault?
  ) {
    do throws(LabelsError) {
      // A NUL may end the text.
      let source = try SourceText(Array(content.prefix { $0 != 0 }))
      var parser = CueText(source, 0..<source.bytes.count, dialect)
      for voice in try parser.voices() {
        var label = Label(start: start, end: end, text: normalText(voice.text.bytes[...]), speaker: voice.speaker)
        do throws(LabelsError) { label.words = try words(voice, from: origin, source) } catch {
          fault = fault ?? error.fault
        }
        if !label.text.isEmpty { labels.append(label) }
      }
    } catch {
      fault = fault ?? error.fault
    }
  }

  private func words(
    _ voice: CueText.Voice, from origin: MediaTime, _ source: SourceText
  ) throws(LabelsError) -> [TimedWord] {
    guard hasEnd else { return [] }
    let delay = start.microseconds - origin.microseconds
    var words = try voice.text.words(from: origin, to: end.shifted(by: -delay), source)
    for index in words.indices {
      words[index].start = words[index].start.shifted(by: delay)
      words[index].end = words[index].end.shifted(by: delay)
    }
    if let late = words.last, late.end > end { throw source.error(.wordOutsideLabel, at: 0) }
    return words
  }

  private mutating func addSubStation(_ content: [UInt8]) {
    let fields = content.prefix { $0 != 0 }.split(
      separator: ASCII.comma, maxSplits: 8, omittingEmptySubsequences: false)
    guard fields.count == 9 else { return }
    var text = SubStationText(from: start)
    text.parse(fields[8])
    let speaker = normalLine(fields[3])
    var label = text.line.label(from: start, to: end, speaker: speaker.isEmpty ? nil : speaker)
    if !hasEnd || !text.hasTimes { label.words = [] }
    if !label.text.isEmpty { labels.append(label) }
  }
}

/// The text of an event of SubStation Alpha.
private struct SubStationText {
  private(set) var line = SungLine()
  private(set) var hasTimes = false
  private var time: MediaTime
  private var piece: [UInt8] = []
  private var isDrawing = false
  /// The length of the piece, in microseconds.
  private var length: Int64 = 0

  init(from start: MediaTime) { time = start }

  mutating func parse(_ text: ArraySlice<UInt8>) {
    var rest = text
    while let byte = rest.popFirst() {
      if byte == ASCII.openBrace, let close = rest.firstIndex(of: ASCII.closeBrace) {
        apply(rest[..<close])
        rest = rest[(close + 1)...]
      } else if byte == ASCII.backslash, let next = rest.first, "Nnh".utf8.contains(next) {
        rest.removeFirst()
        take(next == UInt8(ascii: "h") ? ASCII.space : ASCII.lineFeed)
      } else {
        take(byte)
      }
    }
    line.append(piece, at: time)
  }

  private mutating func take(_ byte: UInt8) {
    if !isDrawing { piece.append(byte) }
  }

  private mutating func apply(_ settings: ArraySlice<UInt8>) {
    for setting in settings.split(separator: ASCII.backslash) {
      let name = setting.prefix(while: ASCII.isLetter)
      let digits = setting.dropFirst(name.count).prefix(while: ASCII.isDigit).prefix(9)
      let number = digits.reduce(0 as Int64) { $0 * 10 + Int64($1 - 0x30) }
      switch String(decoding: name, as: UTF8.self) {
      case "p": isDrawing = number > 0
      case "k", "K", "kf", "ko":
        if hasTimes || !piece.isEmpty { line.append(piece, at: time) }
        piece = []
        hasTimes = true
        time = time.shifted(by: length)
        length = number * 10_000
      default: break
      }
    }
  }
}
