// The content of a subtitle, by its codec:
//
//   S_TEXT/UTF8      the text of a SubRip cue
//   S_TEXT/WEBVTT    the text of a WebVTT cue, whose times count from the cue's start
//   D_WEBVTT/…       identifier LF settings LF text, as ffmpeg writes WebM; times as in a file
//   S_TEXT/ASS       number, layer, style, name, three margins, effect, text: separated by commas
//
// The text of ASS is that of SubStation's files.

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
    let label = SubStation.label(
      fields[8], from: start, to: end, speaker: normalLine(fields[3]), hasEnd: hasEnd)
    if !label.text.isEmpty { labels.append(label) }
  }
}
