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
    try LabelFile(parsing: document([bytes]), as: .json).labels
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
