/// A run of labels of a track as it is stored: as elements of the JSON format's array, so that a whole track is sent as
/// JSON without being parsed.
package enum LabelPieces {
  /// Returns the labels as elements of a JSON array, without its brackets.
  package static func bytes(_ labels: ArraySlice<Label>) -> [UInt8] {
    var written = WrittenLabels()
    written.write(json: labels)
    return written.bytes
  }

  /// Returns the labels of a run. Throws if the bytes were damaged.
  package static func labels(_ bytes: [UInt8]) throws(LabelsError) -> [Label] {
    try LabelFile(parsing: document([bytes]), as: .json, isStrict: true).labels
  }

  /// Returns the IDs of the labels of a run, in order, without parsing them.
  package static func ids(_ run: [UInt8]) -> [String] {
    // A quote in a text is escaped, so this is nowhere else.
    let opening = Array("{\"id\":\"".utf8)
    var (ids, position) = ([String](), 0)
    while position + opening.count < run.count {
      guard run[position] == ASCII.openBrace, run[position...].starts(with: opening) else {
        position += 1
        continue
      }
      let digits = run[(position + opening.count)...].prefix { $0 != ASCII.quote }
      ids.append(String(decoding: digits, as: UTF8.self))
      position = digits.endIndex
    }
    return ids
  }

  /// Returns those labels of a run for which `isChosen` is true, without parsing them. Throws if the bytes are
  /// damaged.
  package static func bytes(_ run: [UInt8], where isChosen: [Bool]) throws(LabelsError) -> [UInt8] {
    var (chosen, index) = ([UInt8](), 0)
    forEachElement(of: run) { element in
      if index < isChosen.count && isChosen[index] {
        if !chosen.isEmpty { chosen.append(ASCII.comma) }
        chosen += run[element]
      }
      index += 1
    }
    guard index == isChosen.count else { throw try SourceText(run).error(.malformedJSON, at: run.count) }
    return chosen
  }

  /// Returns those labels of a run for whose times, in microseconds, `isChosen` returns true, without parsing the rest.
  /// nil if an element doesn't begin as this program writes it, or the last one has no end; parse the run then.
  package static func bytes(_ run: [UInt8], whereTimes isChosen: (_ start: Int64, _ end: Int64) -> Bool) -> [UInt8]? {
    var (chosen, isKnown) = ([UInt8](), true)
    let isWhole = forEachElement(of: run) { element in
      guard isKnown, let (start, end) = times(run.span.extracting(element)) else { return isKnown = false }
      guard isChosen(start, end) else { return }
      if !chosen.isEmpty { chosen.append(ASCII.comma) }
      chosen += run[element]
    }
    return isKnown && isWhole ? chosen : nil
  }

  /// Calls `body` with the place of each element of a run. Returns false if the last one has no end.
  @inline(__always)
  @discardableResult
  private static func forEachElement(of run: [UInt8], _ body: (Range<Int>) -> Void) -> Bool {
    var (start, depth, isText, position) = (0, 0, false, 0)
    while position <= run.count {
      let byte = position < run.count ? run[position] : ASCII.comma
      if isText {
        if byte == ASCII.backslash { position += 1 } else if byte == ASCII.quote { isText = false }
      } else if byte == ASCII.quote {
        isText = true
      } else if byte == ASCII.openBrace || byte == ASCII.openBracket {
        depth += 1
      } else if byte == ASCII.closeBrace || byte == ASCII.closeBracket {
        depth -= 1
      } else if byte == ASCII.comma, depth == 0 {
        body(start..<position)
        start = position + 1
      }
      position += 1
    }
    return start == run.count + 1
  }

  /// Returns the times of an element, which begins as `WrittenLabels` writes it: with the ID, if there is one, then
  /// with the start and the end. nil for anything else.
  private static func times(_ element: borrowing Span<UInt8>) -> (start: Int64, end: Int64)? {
    var position = 0
    func skip(_ text: StaticString) -> Bool {
      let count = text.utf8CodeUnitCount
      guard position + count <= element.count else { return false }
      for index in 0..<count where unsafe element[position + index] != text.utf8Start[index] { return false }
      position += count
      return true
    }
    /// Reads a number of seconds with at most six decimals as microseconds.
    func time() -> Int64? {
      var (value, digits, decimals) = (Int64(0), 0, -1)
      while position < element.count {
        let byte = element[position]
        if byte == UInt8(ascii: "."), decimals < 0 {
          decimals = 0
        } else if (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte), digits < 16, decimals < 6 {
          value = value * 10 + Int64(byte - UInt8(ascii: "0"))
          (digits, decimals) = (digits + 1, decimals < 0 ? decimals : decimals + 1)
        } else {
          break
        }
        position += 1
      }
      guard digits > 0 else { return nil }
      for _ in max(0, decimals)..<6 {
        let (product, overflow) = value.multipliedReportingOverflow(by: 10)
        if overflow { return nil }
        value = product
      }
      return value
    }
    if skip("{\"id\":\"") {
      while position < element.count, element[position] != ASCII.quote { position += 1 }
      guard skip("\",") else { return nil }
    } else {
      guard skip("{") else { return nil }
    }
    guard skip("\"start\":"), let start = time(), skip(",\"end\":"), let end = time(), skip(",") else { return nil }
    return (start, end)
  }

  /// Returns runs that follow each other as one document in the JSON format.
  package static func document(_ pieces: [[UInt8]]) -> [UInt8] {
    var written = WrittenLabels()
    written.bytes.reserveCapacity(pieces.reduce(16) { $0 + $1.count + 1 })
    written.write("{\"labels\":[")
    var isFirst = true
    for piece in pieces where !piece.isEmpty {
      if !isFirst { written.write(ASCII.comma) }
      isFirst = false
      written.write(piece)
    }
    written.write("]}")
    return written.bytes
  }
}
