// Lines that are sung in pieces, as SYLT and the karaoke of SubStation Alpha have them: each piece is a word or a
// syllable with the time at which it begins. It lasts until the next one, or until the line ends.

/// A line in pieces.
struct SungLine {
  /// A piece without a visible text is a pause.
  private(set) var pieces: [(start: MediaTime, text: [UInt8])] = []

  var isBlank: Bool { pieces.allSatisfy { $0.text.allSatisfy(ASCII.isBlankOrLineEnd) } }
  var start: MediaTime? { pieces.first?.start }
  var lastStart: MediaTime? { pieces.last?.start }

  /// Adds a piece. A time before the last one counts as that.
  mutating func append(_ text: some Sequence<UInt8>, at start: MediaTime) {
    pieces.append((max(start, lastStart ?? start), Array(text)))
  }

  /// Returns the line as a label; its pieces are words if there are several.
  func label(from start: MediaTime, to end: MediaTime, speaker: String? = nil) -> Label {
    let text = normalText(pieces.flatMap(\.text)[...])
    var label = Label(start: start, end: end, text: text, speaker: speaker)
    guard pieces.count > 1 else { return label }
    for (index, piece) in pieces.enumerated() {
      let next = index + 1 < pieces.count ? pieces[index + 1].start : end
      let word = normalText(piece.text[...])
      let first = min(max(piece.start, start), end)
      if !word.isEmpty { label.words.append(TimedWord(start: first, end: max(first, min(next, end)), text: word)) }
    }
    return label
  }
}

/// A text whose pieces follow each other in time, and in which line breaks separate lines.
struct SungText {
  private var lines: [SungLine] = []
  private var line = SungLine()
  private var hasLineBreaks = false

  /// Adds a piece, which may begin or end with a line break.
  mutating func append(_ text: [UInt8], at start: MediaTime) {
    // A line break alone ends the last piece.
    let isBreak = !text.isEmpty && text.allSatisfy { $0 == ASCII.lineFeed || $0 == ASCII.carriageReturn }
    if isBreak, !line.pieces.isEmpty { line.append([], at: start) }
    let parts = text.split(omittingEmptySubsequences: false) {
      $0 == ASCII.lineFeed || $0 == ASCII.carriageReturn
    }
    for (index, part) in parts.enumerated() {
      if index > 0 {
        hasLineBreaks = true
        endLine()
      }
      // Behind a line break that ends the piece, nothing sounds yet.
      if !part.isEmpty || parts.count == 1 { line.append(part, at: start) }
    }
  }

  private mutating func endLine() {
    if !line.pieces.isEmpty { lines.append(line) }
    line = SungLine()
  }

  /// Returns the lines as labels. Without a line break, each piece is a line. As in LRC, a line ends where the next one
  /// begins, and one without a text only ends those before it. `duration`: of the recording, if it is known.
  consuming func labels(duration: MediaTime?) -> [Label] {
    endLine()
    var all = lines
    if !hasLineBreaks {
      all = lines.flatMap(\.pieces).map { piece in
        var line = SungLine()
        line.append(piece.text, at: piece.start)
        return line
      }
    }
    let timed = all.compactMap { line in line.start.map { (start: $0, line: line) } }
    let order = timed.indices.sorted { (timed[$0].start, $0) < (timed[$1].start, $1) }.map { timed[$0] }
    let ends = LRC.ends(of: order.map { ($0.start, $0.line.isBlank) }, duration: duration)
    return zip(order, ends).compactMap { (entry, end) in
      guard !entry.line.isBlank else { return nil }
      return entry.line.label(from: entry.start, to: max(end, entry.line.lastStart ?? end))
    }
  }
}
