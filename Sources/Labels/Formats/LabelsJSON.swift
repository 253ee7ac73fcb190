// The service's own JSON, the only format that holds everything:
//
//   {"labels":[{"id":"7","start":1.5,"end":2,"text":"…","speaker":"…","words":[{"start":1.5,"end":2,"text":"…"}]}]}
//
// Times are seconds; `id`, `speaker` and `words` may be missing. Words lie within their label and are sorted by start.
// Any other member is an error.

enum LabelsJSON {
  static func parse(_ source: SourceText) throws(LabelsError) -> LabelFile {
    var scanner = JSONScanner(source)
    var labels: LabelCollector?
    try scanner.object { (scanner, name) throws(LabelsError) in
      guard name == "labels" else { throw scanner.error(.unknownMember(name, known: ["labels"])) }
      guard labels == nil else { throw scanner.error(.repeatedMember(name)) }
      var collector = LabelCollector(source)
      try scanner.array { (scanner) throws(LabelsError) in
        try collector.take(&scanner) { (scanner) throws(LabelsError) in try label(&scanner) }
      }
      labels = collector
    }
    guard let labels else { throw source.error(.missingMember("labels"), at: 0) }
    try scanner.end()
    var file = LabelFile()
    labels.finish(&file)
    return file
  }

  /// Reads a label, or with `isWord` a word, which has no other members than its times and its text.
  static func label(_ scanner: inout JSONScanner, isWord: Bool = false) throws(LabelsError) -> Label {
    scanner.skipBlanks()
    let offset = scanner.position
    var (start, end, text): (MediaTime?, MediaTime?, String?)
    var (speaker, id): (String?, String?)
    var words: [(word: Label, offset: Int)]?
    var endOffset = offset
    try scanner.object { (scanner, name) throws(LabelsError) in
      scanner.skipBlanks()
      let isRepeated: Bool
      switch name {
      case "start":
        isRepeated = start != nil
        start = try scanner.time()
      case "end":
        isRepeated = end != nil
        endOffset = scanner.position
        end = try scanner.time()
      case "text":
        isRepeated = text != nil
        text = try scanner.normalText()
      case "speaker" where !isWord:
        isRepeated = speaker != nil
        if try !scanner.skipNull() { speaker = try scanner.normalLine() }
      case "id" where !isWord:
        isRepeated = id != nil
        if try !scanner.skipNull() { id = try scanner.normalLine() }
      case "words" where !isWord:
        isRepeated = words != nil
        if try !scanner.skipNull() { words = try self.words(&scanner) }
      default:
        let known = ["start", "end", "text"] + (isWord ? [] : ["speaker", "words", "id"])
        throw scanner.error(.unknownMember(name, known: known))
      }
      if isRepeated { throw scanner.error(.repeatedMember(name)) }
    }
    guard let start else { throw scanner.source.error(.missingMember("start"), at: offset) }
    guard let end else { throw scanner.source.error(.missingMember("end"), at: offset) }
    guard let text else { throw scanner.source.error(.missingMember("text"), at: offset) }
    guard start <= end else { throw scanner.source.error(.endBeforeStart, at: endOffset) }
    var label = Label(start: start, end: end, text: text, speaker: speaker?.isEmpty == true ? nil : speaker)
    label.id = id
    label.words.reserveCapacity(words?.count ?? 0)
    for (word, offset) in words ?? [] {
      guard start <= word.start, word.end <= end else { throw scanner.source.error(.wordOutsideLabel, at: offset) }
      guard label.words.last.map({ $0.start <= word.start }) ?? true else {
        throw scanner.source.error(.wordsRunBackward, at: offset)
      }
      if !word.text.isEmpty { label.words.append(TimedWord(start: word.start, end: word.end, text: word.text)) }
    }
    return label
  }

  /// Reads changes of single labels: `{"set":[…],"remove":["7"]}`. Other members are skipped.
  static func edit(_ source: SourceText) throws(LabelsError) -> LabelEdit {
    var (scanner, edit) = (JSONScanner(source), LabelEdit())
    try scanner.object { (scanner, name) throws(LabelsError) in
      switch name {
      case "set":
        var collector = LabelCollector(source)
        try scanner.array { (scanner) throws(LabelsError) in
          scanner.skipBlanks()
          try collector.append(label(&scanner), at: scanner.position)
        }
        edit.set = collector.sorted()
      case "remove":
        try scanner.array { (scanner) throws(LabelsError) in try edit.remove.append(scanner.normalLine()) }
      default: try scanner.skip()
      }
    }
    try scanner.end()
    return edit
  }

  private static func words(_ scanner: inout JSONScanner) throws(LabelsError) -> [(word: Label, offset: Int)] {
    var words: [(word: Label, offset: Int)] = []
    try scanner.array { (scanner) throws(LabelsError) in
      scanner.skipBlanks()
      let offset = scanner.position
      words.append((try label(&scanner, isWord: true), offset))
    }
    return words
  }

  static func write(_ labels: [Label]) -> WrittenLabels {
    var written = WrittenLabels()
    written.write("{\"labels\":[")
    written.write(json: labels)
    written.write("]}")
    return written
  }
}

extension WrittenLabels {
  /// Writes the elements of an array of labels.
  mutating func write(json labels: some Sequence<Label>) {
    var isFirst = true
    for label in labels {
      if !isFirst { write(ASCII.comma) }
      isFirst = false
      write(ASCII.openBrace)
      if let id = label.id {
        write("\"id\":")
        write(json: id)
        write(ASCII.comma)
      }
      write(label.start, label.end, label.text)
      if let speaker = label.speaker {
        write(",\"speaker\":")
        write(json: speaker)
      }
      if !label.words.isEmpty {
        write(",\"words\":[")
        for (index, word) in label.words.enumerated() {
          if index > 0 { write(ASCII.comma) }
          write(ASCII.openBrace)
          write(word.start, word.end, word.text)
          write(ASCII.closeBrace)
        }
        write("]")
      }
      write(ASCII.closeBrace)
    }
  }

  private mutating func write(_ start: MediaTime, _ end: MediaTime, _ text: String) {
    write("\"start\":")
    write(seconds: start)
    write(",\"end\":")
    write(seconds: end)
    write(",\"text\":")
    write(json: text)
  }
}
