// What speech recognizers write: openai-whisper (`--output_format json`, with `--word_timestamps True`) and WhisperX,
// OpenAI's API (`verbose_json`), whisper.cpp (`-oj`, `-ojf`), and Podcasting 2.0's transcripts
// (https://github.com/Podcastindex-org/podcast-namespace, transcripts/transcripts.md):
//
//   {"segments":[{"start":0.0,"end":2.4,"text":" …","speaker":"SPEAKER_00",
//                 "words":[{"word":" …","start":0.0,"end":0.4,"probability":0.98}]}],
//    "language":"en",
//    "words":[{"word":"…","start":0.0,"end":0.4}]}                                  OpenAI; "word_segments" in WhisperX
//
//   {"result":{"language":"en"},
//    "transcription":[{"offsets":{"from":0,"to":2500},"text":" …",                   milliseconds
//                      "tokens":[{"text":" Go","offsets":{"from":0,"to":400}}]}]}
//
//   {"version":"1.0.0","segments":[{"speaker":"…","startTime":0.5,"endTime":2.5,"body":"…"}]}
//
// Members that aren't shown here are left out. WhisperX gives no times for some words, such as numerals; these share
// the time between their neighbors by their length. Words that pass the ends of their segment are cut to it. A token of
// whisper.cpp that begins with a blank begins a word; those in "[_…]" are no text. Words of the whole file belong to
// the segment in which their middle is; without segments, they make labels that end with a sentence, before a pause of
// 1 s, or after 16 words. OpenAI names the language in English.

enum WhisperJSON {
  /// A word that may lack its times.
  private struct Word {
    var start, end: MediaTime?
    var text = ""
    /// Whether a blank precedes it in the file.
    var hasBlank = false
    let offset: Int
  }

  static func parse(_ source: SourceText) throws(LabelsError) -> LabelFile {
    var scanner = JSONScanner(source)
    var (file, labels, words) = (LabelFile(), nil as LabelCollector?, nil as [Word]?)
    try scanner.object { (scanner, name) throws(LabelsError) in
      switch name {
      case "segments", "transcription":
        guard labels == nil else { throw scanner.error(.repeatedMember(name)) }
        guard !scanner.skipNull() else { return }
        var collector = LabelCollector(source)
        try scanner.array { (scanner) throws(LabelsError) in
          try collector.take(&scanner) { (scanner) throws(LabelsError) in try segment(&scanner) }
        }
        labels = collector
      case "words", "word_segments":
        var all = words ?? []
        if !scanner.skipNull() {
          try scanner.array { (scanner) throws(LabelsError) in all.append(try word(&scanner)) }
        }
        words = all
      case "language": file.language = try scanner.optionalLine().map(SpokenLanguage.code)
      case "result" where scanner.isObject:
        try scanner.object { (scanner, name) throws(LabelsError) in
          if name == "language" { file.language = try scanner.optionalLine() } else { try scanner.skip() }
        }
      default: try scanner.skip()
      }
    }
    try scanner.end()
    guard labels != nil || words != nil else { throw source.error(.missingMember("segments"), at: 0) }
    if let labels { labels.finish(&file) }
    let timed = (words ?? []).filter { $0.start != nil && $0.end != nil && !$0.text.isEmpty }
    if file.labels.isEmpty, !timed.isEmpty {
      try group(timed, source, &file)
    } else if file.labels.allSatisfy(\.words.isEmpty) {
      try share(timed, source, &file)
    }
    return file
  }

  private static func segment(_ scanner: inout JSONScanner) throws(LabelsError) -> Label {
    let offset = scanner.position
    var (start, end, text, speaker): (MediaTime?, MediaTime?, String, String?) = (nil, nil, "", nil)
    var (words, endOffset) = ([Word](), offset)
    try scanner.object { (scanner, name) throws(LabelsError) in
      scanner.skipBlanks()
      switch name {
      case "start", "startTime": start = try scanner.time()
      case "end", "endTime":
        endOffset = scanner.position
        end = try scanner.time()
      case "offsets" where scanner.isObject:
        endOffset = scanner.position
        (start, end) = try offsets(&scanner)
      case "text", "body": text = try scanner.normalText()
      case "speaker": if scanner.isString { speaker = try scanner.optionalLine() } else { try scanner.skip() }
      case "words":
        if !scanner.skipNull() {
          try scanner.array { (scanner) throws(LabelsError) in words.append(try word(&scanner)) }
        }
      case "tokens": words = try tokens(&scanner)
      default: try scanner.skip()
      }
    }
    guard let start else { throw scanner.source.error(.missingMember("start"), at: offset) }
    guard let end else { throw scanner.source.error(.missingMember("end"), at: offset) }
    guard start <= end else { throw scanner.source.error(.endBeforeStart, at: endOffset) }
    return Label(
      start: start, end: end, text: text, speaker: speaker, words: try timed(words, start, end, scanner.source))
  }

  private static func offsets(_ scanner: inout JSONScanner) throws(LabelsError) -> (from: MediaTime?, to: MediaTime?) {
    var (from, to): (MediaTime?, MediaTime?)
    try scanner.object { (scanner, name) throws(LabelsError) in
      switch name {
      case "from": from = try scanner.milliseconds()
      case "to": to = try scanner.milliseconds()
      default: try scanner.skip()
      }
    }
    return (from, to)
  }

  private static func word(_ scanner: inout JSONScanner) throws(LabelsError) -> Word {
    scanner.skipBlanks()
    var word = Word(offset: scanner.position)
    try scanner.object { (scanner, name) throws(LabelsError) in
      switch name {
      case "start": if !scanner.skipNull() { word.start = try scanner.time() }
      case "end": if !scanner.skipNull() { word.end = try scanner.time() }
      case "word", "text":
        let bytes = try scanner.string()
        word.text = normalText(bytes)
        word.hasBlank = bytes.first.map(ASCII.isBlank) ?? false
      default: try scanner.skip()
      }
    }
    return word
  }

  /// Reads the tokens of whisper.cpp as words. Those of other programs are numbers, which are skipped.
  private static func tokens(_ scanner: inout JSONScanner) throws(LabelsError) -> [Word] {
    var (words, text, previous) = ([Word](), [UInt8](), MediaTime.zero)
    func finishWord() { if !words.isEmpty { words[words.count - 1].text = normalText(text[...]) } }
    guard !scanner.skipNull() else { return [] }
    try scanner.array { (scanner) throws(LabelsError) in
      guard scanner.isObject else { return try scanner.skip() }
      var (token, bytes) = (Word(offset: scanner.position), [] as ArraySlice<UInt8>)
      try scanner.object { (scanner, name) throws(LabelsError) in
        switch name {
        case "text": bytes = try scanner.string()
        case "offsets": (token.start, token.end) = try offsets(&scanner)
        default: try scanner.skip()
        }
      }
      guard let start = token.start, let end = token.end, !bytes.starts(with: "[_".utf8) else { return }
      previous = max(previous, start)
      if words.isEmpty || bytes.first.map(ASCII.isBlank) ?? false {
        finishWord()
        text = Array(bytes)
        words.append(token)
        words[words.count - 1].start = previous
      } else {
        text += bytes
      }
      words[words.count - 1].end = max(previous, end)
    }
    finishWord()
    return words
  }

  // MARK: Words of the whole file

  /// Gives each word to the label in which its middle is, or to the last one before.
  private static func share(_ words: [Word], _ source: SourceText, _ file: inout LabelFile) throws(LabelsError) {
    var (index, run) = (0, [Word]())
    func finishLabel(_ file: inout LabelFile) throws(LabelsError) {
      do throws(LabelsError) {
        let label = file.labels[index]
        file.labels[index].words = try timed(run, label.start, label.end, source)
      } catch {
        try file.leftOut.add(error)
      }
      run = []
    }
    for word in sorted(words) {
      let middle = ((word.start?.microseconds ?? 0) + (word.end?.microseconds ?? 0)) / 2
      while index + 1 < file.labels.count, file.labels[index + 1].start.microseconds <= middle {
        try finishLabel(&file)
        index += 1
      }
      run.append(word)
    }
    if !file.labels.isEmpty { try finishLabel(&file) }
  }

  /// Makes labels of words.
  private static func group(_ words: [Word], _ source: SourceText, _ file: inout LabelFile) throws(LabelsError) {
    var (labels, run) = (LabelCollector(source), [Word]())
    let hasBlanks = words.contains(where: \.hasBlank)
    func finishLabel() throws(LabelsError) {
      guard let start = run.first?.start, let end = run.compactMap(\.end).max() else { return }
      try labels.take(at: run[0].offset) { () throws(LabelsError) in
        var text = ""
        for word in run {
          if !text.isEmpty, hasBlanks ? word.hasBlank : !isJoined(text, word.text) { text += " " }
          text += word.text
        }
        return [Label(start: start, end: max(start, end), text: text, words: try timed(run, start, end, source))]
      }
      run = []
    }
    for word in sorted(words) {
      if let last = run.last, let end = last.end, let start = word.start {
        let isPause = start.microseconds - end.microseconds >= 1_000_000
        if isPause || run.count == 16 || last.text.last.map({ ".?!…。？！".contains($0) }) ?? false { try finishLabel() }
      }
      run.append(word)
    }
    try finishLabel()
    var leftOut = file.leftOut
    labels.finish(&file)
    for error in file.leftOut.errors { try leftOut.add(error) }
    file.leftOut = leftOut
  }

  /// Whether no blank is between two words: in Chinese and Japanese.
  private static func isJoined(_ text: String, _ word: String) -> Bool {
    [text.unicodeScalars.last, word.unicodeScalars.first].allSatisfy {
      ($0?.value ?? 0) >= 0x2E80 && !(0xAC00...0xD7AF).contains($0?.value ?? 0)
    }
  }

  private static func sorted(_ words: [Word]) -> [Word] {
    func start(_ index: Int) -> MediaTime { words[index].start ?? .zero }
    return words.indices.sorted { (start($0), $0) < (start($1), $1) }.map { words[$0] }
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

/// The languages that Whisper knows.
enum SpokenLanguage {
  private static let codes: [String: String] = {
    let names = """
      af afrikaans am amharic ar arabic as assamese az azerbaijani ba bashkir be belarusian bg bulgarian bn bengali \
      bo tibetan br breton bs bosnian ca catalan cs czech cy welsh da danish de german el greek en english es spanish \
      et estonian eu basque fa persian fi finnish fo faroese fr french gl galician gu gujarati ha hausa haw hawaiian \
      he hebrew hi hindi hr croatian ht haitian hu hungarian hy armenian id indonesian is icelandic it italian \
      ja japanese jw javanese ka georgian kk kazakh km khmer kn kannada ko korean la latin lb luxembourgish ln lingala \
      lo lao lt lithuanian lv latvian mg malagasy mi maori mk macedonian ml malayalam mn mongolian mr marathi ms malay \
      mt maltese my myanmar ne nepali nl dutch nn nynorsk no norwegian oc occitan pa punjabi pl polish ps pashto \
      pt portuguese ro romanian ru russian sa sanskrit sd sindhi si sinhala sk slovak sl slovenian sn shona so somali \
      sq albanian sr serbian su sundanese sv swedish sw swahili ta tamil te telugu tg tajik th thai tk turkmen \
      tl tagalog tr turkish tt tatar uk ukrainian ur urdu uz uzbek vi vietnamese yi yiddish yo yoruba yue cantonese \
      zh chinese
      """.split(separator: " ")
    let pairs = stride(from: 0, to: names.count, by: 2).map { (String(names[$0 + 1]), String(names[$0])) }
    return Dictionary(uniqueKeysWithValues: pairs)
  }()

  /// Returns the code of a language with an English name, or another text as it is.
  static func code(_ name: String) -> String {
    name.utf8.count > 32 ? name : codes[name.split(separator: " ").first.map { $0.lowercased() } ?? ""] ?? name
  }
}
