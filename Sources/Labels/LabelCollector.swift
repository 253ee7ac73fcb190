/// Collects a file's labels, checks the limits, and sorts them.
struct LabelCollector {
  private let source: SourceText
  private var labels: [Label] = []
  private var wordCount = 0
  private var textBytes = 0

  init(_ source: SourceText) { self.source = source }

  /// Adds a label that begins at the byte `offset` of the file.
  mutating func append(_ label: Label, at offset: Int) throws(LabelsError) {
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

  /// Returns labels by start; those that start together keep their order.
  static func sorted(_ labels: [Label]) -> [Label] {
    guard !zip(labels, labels.dropFirst()).allSatisfy({ $0.start <= $1.start }) else { return labels }
    // `sort` isn't documented to be stable.
    let order = labels.indices.sorted { (labels[$0].start, $0) < (labels[$1].start, $1) }
    return order.map { labels[$0] }
  }
}
