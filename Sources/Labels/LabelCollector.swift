/// Collects a file's labels, leaves out the bad ones, checks the limits, and sorts them.
struct LabelCollector {
  private let source: SourceText
  private var labels: [Label] = []
  private var wordCount = 0
  private var textBytes = 0
  private var leftOut = LeftOutCues()

  init(_ source: SourceText) { self.source = source }

  /// Adds the labels of a cue that begins at the byte `offset` of the file, or leaves all of them out.
  mutating func take(at offset: Int, _ cue: () throws(LabelsError) -> [Label]) throws(LabelsError) {
    let labels: [Label]
    do throws(LabelsError) {
      labels = try cue()
      for label in labels { try checkTexts(label, at: offset) }
    } catch {
      return try leaveOut(error)
    }
    for label in labels { try append(label, at: offset) }
  }

  /// Adds the label that is the next value of a JSON text, or leaves it out.
  mutating func take(
    _ scanner: inout JSONScanner, _ cue: (inout JSONScanner) throws(LabelsError) -> Label
  ) throws(LabelsError) {
    scanner.skipBlanks()
    var (before, count) = (scanner, leftOut.count)
    try take(at: before.position) { () throws(LabelsError) in [try cue(&scanner)] }
    guard leftOut.count > count else { return }
    try before.skip()
    scanner = before
  }

  /// Notes a bad cue. Throws if more is wrong than that.
  mutating func leaveOut(_ error: LabelsError) throws(LabelsError) { try leftOut.add(error) }

  private func checkTexts(_ label: Label, at offset: Int) throws(LabelsError) {
    if label.isTooLong { throw source.error(.textTooLong(limit: LabelLimits.textBytes), at: offset) }
  }

  /// Adds a label that begins at the byte `offset` of the file.
  mutating func append(_ label: Label, at offset: Int) throws(LabelsError) {
    try checkTexts(label, at: offset)
    guard labels.count < LabelLimits.labels else {
      throw source.error(.tooManyLabels(limit: LabelLimits.labels), at: offset)
    }
    // LRC repeats a text at each of its times.
    textBytes += label.text.utf8.count
    guard textBytes <= LabelLimits.bytes else {
      throw source.error(.tooMuchText(limit: LabelLimits.bytes), at: offset)
    }
    wordCount += label.words.count
    guard wordCount <= LabelLimits.words else {
      throw source.error(.tooManyWords(limit: LabelLimits.words), at: offset)
    }
    labels.append(label)
  }

  /// Returns the labels by start; those that start together keep their order.
  consuming func sorted() -> [Label] { Self.sorted(labels) }

  /// Moves everything into `file`; sorts the labels as `sorted` does.
  consuming func finish(_ file: inout LabelFile) {
    file.leftOut = leftOut
    file.labels = sorted()
  }

  /// Returns labels by start; those that start together keep their order.
  static func sorted(_ labels: [Label]) -> [Label] {
    guard !zip(labels, labels.dropFirst()).allSatisfy({ $0.start <= $1.start }) else { return labels }
    // `sort` isn't documented to be stable.
    let order = labels.indices.sorted { (labels[$0].start, $0) < (labels[$1].start, $1) }
    return order.map { labels[$0] }
  }
}

extension Label {
  /// Whether a text of it has more than `LabelLimits.textBytes`.
  var isTooLong: Bool {
    func isLong(_ text: String) -> Bool { text.utf8.count > LabelLimits.textBytes }
    return isLong(text) || speaker.map(isLong) ?? false || words.contains { isLong($0.text) }
      || details.texts.contains(where: isLong)
  }

  /// The label with its texts cut to `LabelLimits.textBytes`.
  var withShortTexts: Label {
    var label = self
    label.text = Self.cut(text, to: LabelLimits.textBytes)
    label.speaker = speaker.map { Self.cut($0, to: LabelLimits.textBytes) }
    for index in words.indices { label.words[index].text = Self.cut(words[index].text, to: LabelLimits.textBytes) }
    return label
  }

  /// Returns the beginning of a text in its normal form, of at most `limit` bytes. By code points: a text may be a
  /// single character of a million.
  static func cut(_ text: String, to limit: Int) -> String {
    guard text.utf8.count > limit else { return text }
    var bytes = Array(text.utf8.prefix(limit + 1))
    while bytes.removeLast() & 0xC0 == 0x80 {}
    return normalText(bytes[...])
  }
}
