// Podcasting 2.0's JSON chapters (https://github.com/Podcastindex-org/podcast-namespace, chapters/jsonChapters.md):
//
//   {"version":"1.2.0","chapters":[{"startTime":0,"endTime":60.5,"title":"…","img":"https://…","url":"https://…",
//                                   "toc":false,"location":{"name":"…","geo":"geo:…","osm":"R…"}}]}
//
// With `toc` false, a chapter is hidden. Other members are left out. A chapter without an end lasts until the next one
// that starts later; the last one, until the end of the recording.

enum PodcastChapters {
  static func parse(_ source: SourceText, duration: MediaTime?) throws(LabelsError) -> LabelFile {
    var scanner = JSONScanner(source)
    var (file, labels) = (LabelFile(), nil as LabelCollector?)
    try scanner.object { (scanner, name) throws(LabelsError) in
      switch name {
      case "chapters":
        guard labels == nil else { throw scanner.error(.repeatedMember(name)) }
        var collector = LabelCollector(source)
        try scanner.array { (scanner) throws(LabelsError) in
          try collector.take(&scanner) { (scanner) throws(LabelsError) in try chapter(&scanner) }
        }
        labels = collector
      case "title": if !scanner.skipNull() { file.title = try scanner.normalLine() }
      default: try scanner.skip()
      }
    }
    guard let labels else { throw source.error(.missingMember("chapters"), at: 0) }
    try scanner.end()
    labels.finish(&file)
    close(&file.labels, duration)
    return file
  }

  /// Stands for a missing end until the next chapter is known.
  static let openEnd = MediaTime.limit

  private static func chapter(_ scanner: inout JSONScanner) throws(LabelsError) -> Label {
    let offset = scanner.position
    var (start, end, title, details): (MediaTime?, MediaTime?, String, LabelDetails) = (nil, nil, "", LabelDetails())
    var endOffset = offset
    try scanner.object { (scanner, name) throws(LabelsError) in
      scanner.skipBlanks()
      switch name {
      case "startTime": start = try scanner.time()
      case "endTime":
        endOffset = scanner.position
        if !scanner.skipNull() { end = try scanner.time() }
      case "title": if !scanner.skipNull() { title = try scanner.normalText() }
      case "img": details.image = try scanner.optionalLine()
      case "url": details.url = try scanner.optionalLine()
      case "toc": if !scanner.skipNull() { details.isHidden = try !scanner.flag() }
      case "location": details.location = try LabelsJSON.location(&scanner)
      default: try scanner.skip()
      }
    }
    guard let start else { throw scanner.source.error(.missingMember("startTime"), at: offset) }
    if let end, end < start { throw scanner.source.error(.endBeforeStart, at: endOffset) }
    var chapter = Label(start: start, end: end ?? openEnd, text: title)
    chapter.details = details
    return chapter
  }

  /// Ends each label whose end is `openEnd` where the next one that starts later does, or with the recording.
  static func close(_ chapters: inout [Label], _ duration: MediaTime?) {
    var later: MediaTime?
    for index in chapters.indices.reversed() {
      let start = chapters[index].start
      if index + 1 < chapters.count, chapters[index + 1].start > start { later = chapters[index + 1].start }
      if chapters[index].end == openEnd { chapters[index].end = later ?? max(start, duration ?? start) }
    }
  }

  static func write(_ labels: [Label]) -> WrittenLabels {
    var written = WrittenLabels()
    written.write("{\"version\":\"1.2.0\",\"chapters\":[")
    for (index, label) in labels.enumerated() {
      written.leaveOut(.words, if: !label.words.isEmpty)
      written.leaveOut(.speakers, if: label.speaker != nil)
      if index > 0 { written.write(ASCII.comma) }
      written.write("{\"startTime\":")
      written.write(seconds: label.start)
      written.write(",\"endTime\":")
      written.write(seconds: label.end)
      written.write(",\"title\":")
      written.write(json: label.text)
      let details = label.details
      written.write(member: "img", details.image)
      written.write(member: "url", details.url)
      if details.isHidden { written.write(",\"toc\":false") }
      written.write(details.location)
      written.write("}")
    }
    written.write("]}")
    return written
  }
}
