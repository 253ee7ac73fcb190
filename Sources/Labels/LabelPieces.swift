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
    var chosen: [UInt8] = []
    var (index, start, depth, isText) = (0, 0, 0, false)
    var position = 0
    func isWanted() -> Bool { index < isChosen.count && isChosen[index] }
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
        if isWanted() {
          if !chosen.isEmpty { chosen.append(ASCII.comma) }
          chosen += run[start..<position]
        }
        (index, start) = (index + 1, position + 1)
      }
      position += 1
    }
    guard index == isChosen.count else { throw try SourceText(run).error(.malformedJSON, at: run.count) }
    return chosen
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
