/// A box in time and frequency, and how much the sound in it is turned down.
package struct EditBox: Sendable, Hashable {
  /// In seconds; nil for the recording's start.
  package var start: Double?
  /// In seconds, over `start`; nil for the recording's end.
  package var end: Double?
  /// In Hz; nil for 0.
  package var minHz: Double?
  /// In Hz, over `minHz`; nil for half the sample rate.
  package var maxHz: Double?
  /// In dB, −60 … 0.
  package var gainDB: Double

  /// Creates a box. Times are rounded to the microsecond, frequencies to a tenth of a hertz, and the gain to a
  /// hundredth of a decibel, so that a thousand boxes fit into a worker's request.
  package init(start: Double? = nil, end: Double? = nil, minHz: Double? = nil, maxHz: Double? = nil, gainDB: Double) {
    func rounded(_ value: Double, _ steps: Double) -> Double { (value * steps).rounded() / steps }
    (self.start, self.end) = (start.map { rounded($0, 1e6) }, end.map { rounded($0, 1e6) })
    (self.minHz, self.maxHz) = (minHz.map { rounded($0, 10) }, maxHz.map { rounded($0, 10) })
    self.gainDB = rounded(gainDB, 100)
  }
}

/// What to turn down in a recording. In JSON, an array of five numbers, or null, for each box.
package struct SoundEdit: Sendable, Hashable {
  /// Maximum number of boxes.
  package static let boxLimit = 1000
  /// The gains in dB, also of boxes that overlap.
  package static let gains = -60.0...0.0

  /// The boxes, in any order. Where some overlap, their gains add up, to −60 dB at most.
  package var boxes: [EditBox]

  /// Creates an edit.
  package init(_ boxes: [EditBox]) { self.boxes = boxes }

  /// The first box that reaches over half the sample rate; nil if there is none.
  package func firstBox(above sampleRate: Int) -> Int? {
    boxes.firstIndex { max($0.minHz ?? 0, $0.maxHz ?? 0) > Double(sampleRate) / 2 }
  }
}

extension SoundEdit: Codable {
  /// Decodes the boxes.
  package init(from decoder: any Decoder) throws {
    let rows = try decoder.singleValueContainer().decode([[Double?]].self)
    boxes = try rows.map { row in
      guard row.count == 5, let gain = row[4] else {
        throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "not a box"))
      }
      return EditBox(start: row[0], end: row[1], minHz: row[2], maxHz: row[3], gainDB: gain)
    }
  }

  /// Encodes the same form as `init(from:)` decodes.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(boxes.map { [$0.start, $0.end, $0.minHz, $0.maxHz, $0.gainDB] })
  }
}
