// Words with times, as WebVTT and enhanced LRC write them: a tag with a time stands before each word. A word lasts
// until the next tag, or until the label's end. Where nothing but blanks stands between two tags, nothing sounds:
//
//   <00:01.00>Hello <00:01.50>big<00:02.00> <00:02.50>world
//
// Text before the first tag is a word that begins with the label.

/// A text with the times that stand within it.
struct InlineTimes {
  /// A time, before the byte `position` of the text.
  struct Mark {
    let time: MediaTime
    let position: Int
    /// Where it is in the file.
    let offset: Int
  }

  private(set) var bytes: [UInt8] = []
  private(set) var marks: [Mark] = []

  private(set) var isBlank = true

  mutating func append(_ byte: UInt8) {
    // Some programs write blanks on both sides of a tag.
    if ASCII.isBlank(byte), marks.last?.position == bytes.count, bytes.last.map(ASCII.isBlank) ?? true { return }
    if !ASCII.isBlankOrLineEnd(byte) { isBlank = false }
    bytes.append(byte)
  }

  mutating func append(_ text: some Sequence<UInt8>) { for byte in text { append(byte) } }

  mutating func mark(_ time: MediaTime, at offset: Int) {
    marks.append(Mark(time: time, position: bytes.count, offset: offset))
  }

  /// Returns the words of a label: none if there are no marks. Throws if their times run backward or begin before
  /// `start`; an end that the marks pass is the caller's to check.
  func words(from start: MediaTime, to end: MediaTime, _ source: SourceText) throws(LabelsError) -> [TimedWord] {
    guard !marks.isEmpty else { return [] }
    var words: [TimedWord] = []
    var (time, position) = (start, 0)
    for mark in marks {
      guard mark.time >= time else {
        throw source.error(mark.time < start ? .wordOutsideLabel : .wordsRunBackward, at: mark.offset)
      }
      append(TimedWord(start: time, end: mark.time, text: normalText(bytes[position..<mark.position])), to: &words)
      (time, position) = (mark.time, mark.position)
    }
    append(TimedWord(start: time, end: max(time, end), text: normalText(bytes[position...])), to: &words)
    return words
  }

  private func append(_ word: TimedWord, to words: inout [TimedWord]) {
    if !word.text.isEmpty { words.append(word) }
  }
}

/// Where the words of a label are in its text.
struct PlacedWords {
  /// The bytes of the label's text.
  let text: [UInt8]
  /// For each word, its range in `text`. Only blanks stand between them.
  let ranges: [Range<Int>]

  /// Fails if the words aren't the whole text, so that their times can't be written into it.
  init?(_ label: Label) {
    let text = Array(label.text.utf8)
    var (ranges, position): ([Range<Int>], Int) = ([], 0)
    ranges.reserveCapacity(label.words.count)
    for word in label.words {
      while position < text.count, ASCII.isBlankOrLineEnd(text[position]) { position += 1 }
      let length = word.text.utf8.count
      guard length > 0, text[position...].starts(with: word.text.utf8) else { return nil }
      ranges.append(position..<position + length)
      position += length
    }
    guard position == text.count else { return nil }
    (self.text, self.ranges) = (text, ranges)
  }
}

extension WrittenLabels {
  /// Writes a label's text with the times of its words.
  ///
  /// `time` writes a tag, `piece` a stretch of the text. `closes`: whether the end of the last word is written even if
  /// it is the label's.
  mutating func write(
    inline label: Label, closes: Bool, time: (inout WrittenLabels, MediaTime) -> Void,
    piece: (inout WrittenLabels, ArraySlice<UInt8>) -> Void
  ) {
    guard !label.words.isEmpty, let placed = PlacedWords(label) else {
      leaveOut(.words, if: !label.words.isEmpty)
      return piece(&self, Array(label.text.utf8)[...])
    }
    for (index, word) in label.words.enumerated() {
      let range = placed.ranges[index]
      time(&self, word.start)
      piece(&self, placed.text[range])
      guard index + 1 < placed.ranges.count else {
        if closes || word.end != label.end { time(&self, word.end) }
        return
      }
      let next = label.words[index + 1]
      leaveOut(.wordEnds, if: next.start < word.end)
      if next.start > word.end { time(&self, word.end) }
      piece(&self, placed.text[range.upperBound..<placed.ranges[index + 1].lowerBound])
    }
  }
}
