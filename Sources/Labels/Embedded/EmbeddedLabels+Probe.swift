// What ffprobe reports about a video file, with -of json:
//
//   {"chapters":[{"id":0,"start_time":"0.000000","end_time":"2.000000","tags":{"title":"One"}}],
//    "format":{"tags":{"lyrics":"…"}}}
//
// An end may be missing, or be "N/A".

extension EmbeddedLabels {
  /// Adds chapters and lyrics from ffprobe's report.
  package mutating func add(probe bytes: [UInt8], _ clock: EmbeddedClock) {
    do throws(LabelsError) {
      var report = ProbeReport(clock)
      var scanner = JSONScanner(try SourceText(bytes))
      try report.read(&scanner)
      PodcastChapters.close(&report.chapters, clock.duration)
      add(.chapters, .chapters, report.chapters)
      add(report.comments, clock)
    } catch {
      note(.damaged(.chapters))
    }
  }
}

private struct ProbeReport {
  var chapters: [Label] = []
  var comments = TaggedComments()
  private let clock: EmbeddedClock

  init(_ clock: EmbeddedClock) { self.clock = clock }

  mutating func read(_ scanner: inout JSONScanner) throws(LabelsError) {
    var found: [Label] = []
    var comments = TaggedComments()
    try scanner.object { (scanner, name) throws(LabelsError) in
      switch name {
      case "chapters":
        try scanner.array { (scanner) throws(LabelsError) in
          if let chapter = try chapter(&scanner), found.count < LabelLimits.labels { found.append(chapter) }
        }
      case "format":
        try scanner.object { (scanner, name) throws(LabelsError) in
          guard name == "tags" else { return try scanner.skip() }
          try scanner.object { (scanner, name) throws(LabelsError) in
            let text = try scanner.normalText()
            comments.add(Array(name.utf8)[...], Array(text.utf8)[...])
          }
        }
      default: try scanner.skip()
      }
    }
    chapters = LabelCollector.sorted(found)
    self.comments = comments
  }

  private func chapter(_ scanner: inout JSONScanner) throws(LabelsError) -> Label? {
    var (start, end, title): (Int64?, Int64?, String) = (nil, nil, "")
    try scanner.object { (scanner, name) throws(LabelsError) in
      switch name {
      case "start_time": start = Self.microseconds(try scanner.normalLine())
      case "end_time": end = Self.microseconds(try scanner.normalLine())
      case "tags":
        try scanner.object { (scanner, name) throws(LabelsError) in
          if name == "title" { title = try scanner.normalText() } else { try scanner.skip() }
        }
      default: try scanner.skip()
      }
    }
    guard let start else { return nil }
    let first = clock.time(start)
    guard let end, end > start else { return Label(start: first, end: PodcastChapters.openEnd, text: title) }
    // One that is over before the recording begins.
    guard end > clock.zero else { return nil }
    return Label(start: first, end: clock.time(end), text: title)
  }

  /// Returns decimal seconds of either sign as microseconds; nil for another text.
  private static func microseconds(_ text: String) -> Int64? {
    guard let seconds = Double(text), seconds.magnitude < 1e9 else { return nil }
    return Int64((seconds * 1_000_000).rounded())
  }
}
