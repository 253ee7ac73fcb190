// The output of openai-whisper (`--output_format json`, with `--word_timestamps True`) and of WhisperX:
//
//   {"segments":[{"start":0.0,"end":2.4,"text":" …","speaker":"SPEAKER_00",
//                 "words":[{"word":" …","start":0.0,"end":0.4,"probability":0.98}]}],
//    "language":"en"}
//
// Members that aren't shown here are left out. WhisperX gives no times for some words, such as numerals; these share
// the time between their neighbors by their length. Words that pass the ends of their segment are cut to it.

enum WhisperJSON {
  /// A word that may lack its times.
  private struct Word {
    var start, end: MediaTime?
    var text = ""
    let offset: Int
  }

  static func parse(_ source: SourceText) throws(LabelsError) -> LabelFile {
    var scanner = JSONScanner(source)
    var (file, labels) = (LabelFile(), nil as LabelCollector?)
    try scanner.object { (scanner, name) throws(LabelsError) in
      switch name {
      case "segments":
        guard labels == nil else { throw scanner.error(.repeatedMember(name)) }
        var collector = LabelCollector(source)
        try scanner.array { (scanner) throws(LabelsError) in
          try collector.take(&scanner) { (scanner) throws(LabelsError) in try segment(&scanner) }
        }
        labels = collector
      case "language":
        if try !scanner.skipNull() { file.language = try scanner.normalLine() }
      default: try scanner.skip()
      }
    }
    guard let labels else { throw source.error(.missingMember("segments"), at: 0) }
    try scanner.end()
    labels.finish(&file)
    return file
  }

  private static func segment(_ scanner: inout JSONScanner) throws(LabelsError) -> Label {
    let offset = scanner.position
    var (start, end, text, speaker): (MediaTime?, MediaTime?, String, String?) = (nil, nil, "", nil)
    var (words, endOffset) = ([Word](), offset)
    try scanner.object { (scanner, name) throws(LabelsError) in
      scanner.skipBlanks()
      switch name {
      case "start": start = try scanner.time()
      case "end":
        endOffset = scanner.position
        end = try scanner.time()
      case "text": text = try scanner.normalText()
      case "speaker":
        if try !scanner.skipNull() { speaker = try scanner.normalLine() }
      case "words":
        if try !scanner.skipNull() {
          try scanner.array { (scanner) throws(LabelsError) in words.append(try word(&scanner)) }
        }
      default: try scanner.skip()
      }
    }
    guard let start else { throw scanner.source.error(.missingMember("start"), at: offset) }
    guard let end else { throw scanner.source.error(.missingMember("end"), at: offset) }
    guard start <= end else { throw scanner.source.error(.endBeforeStart, at: endOffset) }
    return Label(
      start: start, end: end, text: text, speaker: speaker, words: try timed(words, start, end, scanner.source))
  }

  private static func word(_ scanner: inout JSONScanner) throws(LabelsError) -> Word {
    scanner.skipBlanks()
    var word = Word(offset: scanner.position)
    try scanner.object { (scanner, name) throws(LabelsError) in
      switch name {
      case "start": if try !scanner.skipNull() { word.start = try scanner.time() }
      case "end": if try !scanner.skipNull() { word.end = try scanner.time() }
      case "word", "text": word.text = try scanner.normalText()
      default: try scanner.skip()
      }
    }
    return word
  }

  private static func timed(
    _ words: [Word], _ start: MediaTime, _ end: MediaTime, _ source: SourceText
  ) throws(LabelsError) -> [TimedWord] {
    var timed: [TimedWord] = []
    var untimed: [String] = []
    for word in words where !word.text.isEmpty {
      guard let first = word.start ?? word.end, let last = word.end ?? word.start else {
        untimed.append(word.text)
        continue
      }
      guard first <= last else { throw source.error(.endBeforeStart, at: word.offset) }
      let cut = (max(start, min(first, end)), max(start, min(last, end)))
      guard timed.last.map({ $0.start <= cut.0 }) ?? true else {
        throw source.error(.wordsRunBackward, at: word.offset)
      }
      spread(&untimed, until: cut.0, start, &timed)
      timed.append(TimedWord(start: cut.0, end: cut.1, text: word.text))
    }
    // Without a single time there is nothing between which to share.
    if !timed.isEmpty { spread(&untimed, until: end, start, &timed) }
    return timed
  }

  /// Gives words the time from the last timed one to `end`, by their length.
  private static func spread(
    _ words: inout [String], until end: MediaTime, _ labelStart: MediaTime, _ timed: inout [TimedWord]
  ) {
    let from = min(timed.last?.end ?? labelStart, end).microseconds
    let total = Int64(words.reduce(0) { $0 + $1.utf8.count })
    var before: Int64 = 0
    for word in words {
      let after = before + Int64(word.utf8.count)
      let length = end.microseconds - from
      // In 128 bits, because the product may overflow.
      let times = [before, after].map { MediaTime(clamping: from + Int64(Int128(length) * Int128($0) / Int128(total))) }
      timed.append(TimedWord(start: max(times[0], timed.last?.start ?? times[0]), end: times[1], text: word))
      before = after
    }
    words = []
  }
}
