// TTML and DFXP (https://www.w3.org/TR/ttml2/), as XML without a document type:
//
//   <tt xml:lang="en" ttp:frameRate="25" ttp:frameRateMultiplier="1000 1001" ttp:tickRate="10000000">
//     <head><metadata><ttm:title>…</ttm:title>
//       <ttm:agent xml:id="a1" type="person"><ttm:name>Ann</ttm:name></ttm:agent></metadata></head>
//     <body><div><p begin="1s" end="00:00:02:12" ttm:agent="a1">…<br/><span begin="…">word</span></p></div></body>
//   </tt>
//
//   time  = hours ":" minutes ":" seconds ["." fraction / ":" frames ["." part]]
//         / number ("h" / "m" / "s" / "ms" / "f" / "t")
//         / [minutes ":"] seconds ["." fraction]                         Apple's lyrics
//
// Times count from the begin of the parent; in Apple's lyrics (`itunes:timing`), from the start of the file. `dur` is
// the length. A paragraph without an end lasts until the next one that starts later. In a paragraph with times, spans
// with times are words; in one without, each is a label. Blanks and line ends are one blank, unless `xml:space` is
// "preserve". Styles, regions, and paragraphs without text, as of subtitles in pictures, are left out.

enum TTML {
  static func parse(_ source: SourceText, duration: MediaTime?) throws(LabelsError) -> LabelFile {
    var reader = TTMLReader(source)
    return try reader.file(duration)
  }
}

private struct TTMLReader {
  /// What an element passes on to those inside it.
  private struct Context {
    var begin = MediaTime.zero
    var end: MediaTime?
    /// Whether the element or one around it has times.
    var hasTimes = false
    /// Whether it is in a span with times.
    var isWord = false
    var isPreserved = false
    var agent: String?
  }

  /// Text with the same times.
  private struct Piece {
    var bytes: [UInt8] = []
    let context: Context
  }

  private let source: SourceText
  private var scanner: XMLScanner
  private var labels: LabelCollector
  private var names: [String: String] = [:]
  private var file = LabelFile()
  private var framesPerSecond = 30.0
  private var ticksPerSecond = 1.0
  private var timesAreAbsolute = false

  init(_ source: SourceText) { (self.source, scanner, labels) = (source, XMLScanner(source), LabelCollector(source)) }

  mutating func file(_ duration: MediaTime?) throws(LabelsError) -> LabelFile {
    guard case .begin(let root)? = try scanner.next(), root.name == "tt" else {
      throw source.error(.missingMember("tt"), at: 0)
    }
    file.language = root.text("lang")
    timesAreAbsolute = root.attributes["timing"] != nil
    let frameRate = root.text("frameRate").flatMap(Double.init)
    framesPerSecond = frameRate ?? framesPerSecond
    let ratio = (root.text("frameRateMultiplier") ?? "").split { $0 == " " || $0 == ":" }.compactMap { Double($0) }
    if ratio.count == 2, ratio[1] != 0 { framesPerSecond *= ratio[0] / ratio[1] }
    let parts = root.text("subFrameRate").flatMap(Double.init) ?? 1
    ticksPerSecond = root.text("tickRate").flatMap(Double.init) ?? frameRate.map { $0 * parts } ?? 1
    try content(Context(isPreserved: root.text("space") == "preserve"))
    labels.finish(&file)
    PodcastChapters.close(&file.labels, duration)
    return file
  }

  /// Reads what is inside an element that has begun.
  private mutating func content(_ context: Context) throws(LabelsError) {
    while let event = try scanner.next() {
      switch event {
      case .end: return
      case .text: continue
      case .begin(let element):
        switch element.name {
        case "head", "metadata": try metadata()
        case "p": try paragraph(element, context)
        default: try content((try? inside(element, context)) ?? context)
        }
      }
    }
  }

  private mutating func metadata(of agent: String? = nil) throws(LabelsError) {
    while let event = try scanner.next() {
      switch event {
      case .end: return
      case .text: continue
      case .begin(let element):
        switch element.name {
        case "title": file.title = try text()
        case "name":
          let name = try text()
          if let agent, names.count < 10_000 { names[agent] = names[agent] ?? name }
        case "agent": try metadata(of: element.text("id"))
        default: try metadata(of: agent)
        }
      }
    }
  }

  /// Returns the text of an element that has begun, as one line; nil if it is empty.
  private mutating func text() throws(LabelsError) -> String? {
    var (bytes, depth) = ([UInt8](), 1)
    while depth > 0, let event = try scanner.next() {
      switch event {
      case .begin: depth += 1
      case .end: depth -= 1
      case .text(let text): bytes += text
      }
    }
    let line = normalLine(bytes[...])
    return line.isEmpty ? nil : line
  }

  // MARK: Paragraphs

  private mutating func paragraph(_ element: XMLScanner.Element, _ outer: Context) throws(LabelsError) {
    let context: Context
    do throws(LabelsError) { context = try inside(element, outer) } catch {
      try scanner.skip()
      return try labels.leaveOut(error)
    }
    var (pieces, fault) = ([Piece(context: context)], nil as LabelsError?)
    try spans(context, &pieces, &fault)
    if let fault { return try labels.leaveOut(fault) }
    let found = Result { () throws(LabelsError) in try labels(of: pieces, context, at: element.offset) }
    try labels.take(at: element.offset) { () throws(LabelsError) in try found.get() }
  }

  /// Returns the labels of a paragraph. `context`: inside it.
  private func labels(of pieces: [Piece], _ context: Context, at offset: Int) throws(LabelsError) -> [Label] {
    let words = pieces.filter(\.context.isWord)
    guard context.hasTimes || words.isEmpty else {
      return try words.map { (piece) throws(LabelsError) in
        try self.label(normalText(piece.bytes[...]), piece.context, at: offset)
      }.filter { !$0.text.isEmpty }
    }
    let text = normalText(pieces.flatMap(\.bytes)[...])
    guard !text.isEmpty else { return [] }
    guard context.hasTimes else { throw source.error(.missingTimes(.ttml), at: offset) }
    var label = try self.label(text, context, at: offset)
    guard label.end != PodcastChapters.openEnd else { return [label] }
    for piece in words {
      let word = normalText(piece.bytes[...])
      let first = max(label.start, min(piece.context.begin, label.end))
      let last = max(first, min(piece.context.end ?? label.end, label.end))
      guard !word.isEmpty else { continue }
      guard label.words.last.map({ $0.start <= first }) ?? true else {
        throw source.error(.wordsRunBackward, at: offset)
      }
      label.words.append(TimedWord(start: first, end: last, text: word))
    }
    return [label]
  }

  private func label(_ text: String, _ context: Context, at offset: Int) throws(LabelsError) -> Label {
    let end = context.end ?? PodcastChapters.openEnd
    guard context.begin <= end else { throw source.error(.endBeforeStart, at: offset) }
    let speaker = context.agent.map { names[$0] ?? $0 }
    return Label(start: context.begin, end: end, text: text, speaker: speaker)
  }

  /// Reads what is inside a paragraph or a span that has begun. `fault`: of the first span with bad times.
  private mutating func spans(
    _ context: Context, _ pieces: inout [Piece], _ fault: inout LabelsError?
  ) throws(LabelsError) {
    while let event = try scanner.next() {
      switch event {
      case .end: return
      case .text(let text): append(text, context, to: &pieces)
      case .begin(let element):
        switch element.name {
        case "br":
          pieces[pieces.count - 1].bytes.append(ASCII.lineFeed)
          try scanner.skip()
        case "metadata", "set", "image": try scanner.skip()
        default:
          var inner = context
          do throws(LabelsError) { inner = try inside(element, context) } catch { fault = fault ?? error }
          let isWord = Self.hasTimes(element)
          inner.isWord = isWord || inner.isWord
          if isWord { pieces.append(Piece(context: inner)) }
          try spans(inner, &pieces, &fault)
          if isWord { pieces.append(Piece(context: context)) }
        }
      }
    }
  }

  private func append(_ text: [UInt8], _ context: Context, to pieces: inout [Piece]) {
    for byte in text {
      let last = pieces.count - 1
      guard !context.isPreserved, ASCII.isBlankOrLineEnd(byte) else {
        pieces[last].bytes.append(byte)
        continue
      }
      if let before = pieces[last].bytes.last, ASCII.isBlankOrLineEnd(before) { continue }
      pieces[last].bytes.append(ASCII.space)
    }
  }

  // MARK: Times

  /// Returns the context inside an element.
  private func inside(_ element: XMLScanner.Element, _ outer: Context) throws(LabelsError) -> Context {
    var context = outer
    func time(_ name: String) throws(LabelsError) -> Int64? {
      guard let text = element.attributes[name] else { return nil }
      do throws(LabelsFault) { return try self.time(text).microseconds } catch {
        throw source.error(error, at: element.offset)
      }
    }
    let origin = timesAreAbsolute ? 0 : outer.begin.microseconds
    let (begin, end, length) = (try time("begin"), try time("end"), try time("dur"))
    if let begin { context.begin = MediaTime(clamping: origin + begin) }
    let ends = [end.map { origin + $0 }, length.map { context.begin.microseconds + $0 }].compactMap(\.self)
    if let last = ends.min().map({ MediaTime(clamping: $0) }) {
      context.end = min(last, outer.end ?? last)
    }
    context.hasTimes = outer.hasTimes || Self.hasTimes(element)
    switch element.text("space") {
    case "preserve": context.isPreserved = true
    case "default": context.isPreserved = false
    default: break
    }
    context.agent = element.text("agent") ?? outer.agent
    return context
  }

  private static func hasTimes(_ element: XMLScanner.Element) -> Bool {
    ["begin", "end", "dur"].contains { element.attributes[$0] != nil }
  }

  private func time(_ text: [UInt8]) throws(LabelsFault) -> MediaTime {
    let range = 0..<text.count
    let parser = TimeParser(bytes: text)
    if let last = text.last, ASCII.isLetter(last) {
      let unit = text.reversed().prefix(while: ASCII.isLetter).reversed()
      let number = try parser.seconds(0..<text.count - unit.count).seconds
      return try time(seconds: number * seconds(in: String(decoding: unit, as: UTF8.self)))
    }
    guard text.count(where: { $0 == ASCII.colon }) == 3, let colon = text.lastIndex(of: ASCII.colon) else {
      return try parser.clock(range, fewestParts: 1)
    }
    let frames = try parser.seconds(colon + 1..<text.count).seconds
    return try time(seconds: parser.clock(0..<colon).seconds + frames / framesPerSecond)
  }

  private func time(seconds: Double) throws(LabelsFault) -> MediaTime {
    guard seconds.isFinite else { throw .badTime }
    guard let time = MediaTime(seconds: seconds) else { throw seconds < 0 ? .negativeTime : .timeTooLarge }
    return time
  }

  /// The length of a unit.
  private func seconds(in unit: String) throws(LabelsFault) -> Double {
    switch unit {
    case "h": return 3600
    case "m": return 60
    case "s": return 1
    case "ms": return 0.001
    case "f": return 1 / framesPerSecond
    case "t": return 1 / ticksPerSecond
    default: throw .badTime
    }
  }
}
