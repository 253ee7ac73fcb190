// The service's own JSON, the only format that holds everything:
//
//   {"labels":[{"id":"7","start":1.5,"end":2,"text":"…","speaker":"…","words":[{"start":1.5,"end":2,"text":"…"}],
//               "image":"https://…","url":"https://…","location":{"name":"…","geo":"geo:…","osm":"R…"},
//               "hidden":true,"min_hz":100,"max_hz":4000.5}]}
//
// Times are seconds; all but these and the text may be missing. Words lie within their label and are sorted by start.
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

  private static let membersOfWord = ["start", "end", "text"]
  private static let members =
    membersOfWord + ["speaker", "words", "id", "image", "url", "location", "hidden", "min_hz", "max_hz"]

  /// Reads a label, or with `isWord` a word, which has no other members than its times and its text.
  static func label(_ scanner: inout JSONScanner, isWord: Bool = false) throws(LabelsError) -> Label {
    scanner.skipBlanks()
    let offset = scanner.position
    var (start, end, text): (MediaTime?, MediaTime?, String?)
    var (speaker, id, details): (String?, String?, LabelDetails) = (nil, nil, LabelDetails())
    var words: [(word: Label, offset: Int)] = []
    var (endOffset, bandOffset, seen) = (offset, offset, 0)
    let known = isWord ? membersOfWord : members
    try scanner.object { (scanner, name) throws(LabelsError) in
      scanner.skipBlanks()
      guard let index = known.firstIndex(of: name) else { throw scanner.error(.unknownMember(name, known: known)) }
      switch name {
      case "start": start = try scanner.time()
      case "end":
        endOffset = scanner.position
        end = try scanner.time()
      case "text": text = try scanner.normalText()
      case "speaker": speaker = try scanner.optionalLine()
      case "words": if !scanner.skipNull() { words = try self.words(&scanner) }
      case "id": id = scanner.skipNull() ? nil : try scanner.normalLine()
      case "image": details.image = try scanner.optionalLine()
      case "url": details.url = try scanner.optionalLine()
      case "location": details.location = try location(&scanner)
      case "hidden": if !scanner.skipNull() { details.isHidden = try scanner.flag() }
      case "min_hz": details.minHz = try scanner.skipNull() ? nil : scanner.number()
      default:
        bandOffset = scanner.position
        details.maxHz = try scanner.skipNull() ? nil : scanner.number()
      }
      guard seen & 1 << index == 0 else { throw scanner.error(.repeatedMember(name)) }
      seen |= 1 << index
    }
    guard let start else { throw scanner.source.error(.missingMember("start"), at: offset) }
    guard let end else { throw scanner.source.error(.missingMember("end"), at: offset) }
    guard let text else { throw scanner.source.error(.missingMember("text"), at: offset) }
    guard start <= end else { throw scanner.source.error(.endBeforeStart, at: endOffset) }
    if let low = details.minHz, let high = details.maxHz, high < low {
      throw scanner.source.error(.bandUpsideDown, at: bandOffset)
    }
    var label = Label(start: start, end: end, text: text, speaker: speaker)
    (label.id, label.details) = (id, details)
    label.words.reserveCapacity(words.count)
    for (word, offset) in words {
      guard start <= word.start, word.end <= end else { throw scanner.source.error(.wordOutsideLabel, at: offset) }
      guard label.words.last.map({ $0.start <= word.start }) ?? true else {
        throw scanner.source.error(.wordsRunBackward, at: offset)
      }
      if !word.text.isEmpty { label.words.append(TimedWord(start: word.start, end: word.end, text: word.text)) }
    }
    return label
  }

  /// Reads a place, or `null`. Members that aren't known are skipped.
  static func location(_ scanner: inout JSONScanner) throws(LabelsError) -> LabelLocation? {
    guard !scanner.skipNull() else { return nil }
    var location = LabelLocation()
    try scanner.object { (scanner, name) throws(LabelsError) in
      switch name {
      case "name": location.name = try scanner.optionalLine()
      case "geo": location.geo = try scanner.optionalLine()
      case "osm": location.osm = try scanner.optionalLine()
      default: try scanner.skip()
      }
    }
    return location == LabelLocation() ? nil : location
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
      write(member: "speaker", label.speaker)
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
      let details = label.details
      write(member: "image", details.image)
      write(member: "url", details.url)
      write(details.location)
      if details.isHidden { write(",\"hidden\":true") }
      for (name, hz) in [("min_hz", details.minHz), ("max_hz", details.maxHz)] {
        guard let hz else { continue }
        write(",\"\(name)\":")
        write(hz: hz)
      }
      write(ASCII.closeBrace)
    }
  }

  /// Writes a comma, a name and a text, if there is one.
  mutating func write(member name: String, _ text: String?) {
    guard let text else { return }
    write(",\"\(name)\":")
    write(json: text)
  }

  /// Writes a comma and a place as the member `location`, if there is one.
  mutating func write(_ location: LabelLocation?) {
    guard let location, location != LabelLocation() else { return }
    write(",\"location\":")
    let start = bytes.count
    for (name, text) in [("name", location.name), ("geo", location.geo), ("osm", location.osm)] {
      write(member: name, text)
    }
    bytes[start] = ASCII.openBrace
    write(ASCII.closeBrace)
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
