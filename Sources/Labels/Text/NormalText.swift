// The normal form of a text: lines are separated by LF, have no blanks at their ends, and the first, the last and two
// in succession are never empty; control characters other than the tab are removed.

/// Returns a text in its normal form.
func normalText(_ bytes: ArraySlice<UInt8>) -> String {
  if isNormal(bytes) { return String(decoding: bytes, as: UTF8.self) }
  var text: [UInt8] = []
  text.reserveCapacity(bytes.count)
  var (lines, isBehindGap) = (TextLines(bytes), false)
  while let line = lines.next() {
    let kept = bytes[line].filter { $0 >= 0x20 && $0 != 0x7F || $0 == ASCII.tab }
    guard let first = kept.firstIndex(where: { !ASCII.isBlank($0) }),
      let last = kept.lastIndex(where: { !ASCII.isBlank($0) })
    else {
      isBehindGap = true
      continue
    }
    if !text.isEmpty { text += isBehindGap ? [ASCII.lineFeed, ASCII.lineFeed] : [ASCII.lineFeed] }
    isBehindGap = false
    text.append(contentsOf: kept[first...last])
  }
  return String(decoding: text, as: UTF8.self)
}

/// Returns a text of one line: the lines of its normal form, joined by spaces; tabs become spaces.
func normalLine(_ bytes: ArraySlice<UInt8>) -> String {
  let text = normalText(bytes)
  guard text.utf8.contains(where: { $0 < 0x20 }) else { return text }
  let lines = text.utf8.map { $0 == ASCII.tab ? ASCII.space : $0 }.split(separator: ASCII.lineFeed)
  return String(decoding: Array(lines.joined(separator: [ASCII.space])), as: UTF8.self)
}

/// Whether the text is its own normal form, judging by bytes; false if it has several lines.
private func isNormal(_ bytes: ArraySlice<UInt8>) -> Bool {
  guard let first = bytes.first, let last = bytes.last else { return true }
  return !ASCII.isBlank(first) && !ASCII.isBlank(last)
    && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == ASCII.tab }
}
