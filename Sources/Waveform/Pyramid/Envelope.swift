// Maps a slice's pixels to a picture's columns.
//
// A picture shows exactly the requested window, so its columns rarely begin where a slice's pixels do. Column i covers
// frames s + i·c … s + (i + 1)·c, both real numbers. Each pixel of the slice is assigned entirely to the column that
// contains its center. So no peak is lost or drawn twice, and each is at most half a pixel off. A column without a
// pixel, which occurs if pixels are wider than columns, copies the pixel that contains the column's center.
//
// On each side there is one additional column if the recording continues there: outlines lead to it, so that adjacent
// pictures join seamlessly.

/// One lane's outline and loudness by column, full scale ±1; NaN for columns without data.
///
/// Column i of the picture has index i + 1; the first and last index are outside the picture.
struct Envelope: Equatable {
  private(set) var tops: [Float]
  private(set) var bottoms: [Float]
  /// Between 0 and the larger magnitude of top and bottom.
  private(set) var loudness: [Float]

  /// Creates `columns` columns of `framesPerColumn` frames each, starting at frame `start`, from one lane of a slice
  /// with peaks and RMS.
  init(_ slice: WaveformSlice, lane: Int, start: Double, framesPerColumn: Double, columns: Int) {
    tops = Array(repeating: .nan, count: columns + 2)
    bottoms = tops
    loudness = tops
    guard slice.length > 0 else { return }
    let scale = Double(slice.window.scale)
    let first = Double(slice.window.startFrame)
    let end = Double(slice.window.frameRange.upperBound)
    var weights = [Float](repeating: 0, count: columns + 2)
    for pixel in 0..<slice.length {
      let begin = first + Double(pixel) * scale
      let centre = (begin + min(begin + scale, end)) / 2
      var column = ((centre - start) / framesPerColumn).rounded(.down)
      // The last point is a full one, so it can form a pixel that begins where the recording ends.
      if begin >= end { column = min(column, Double(columns - 1)) }
      guard column >= -1, column <= Double(columns) else { continue }
      add(slice, pixel * slice.lanes + lane, to: Int(column) + 1, &weights)
    }
    for column in weights.indices where weights[column] == 0 {
      let centre = start + (Double(column) - 0.5) * framesPerColumn
      let pixel = ((centre - first) / scale).rounded(.down)
      guard pixel >= 0, pixel < Double(slice.length), centre < end else { continue }
      add(slice, Int(pixel) * slice.lanes + lane, to: column, &weights)
    }
    for column in weights.indices where weights[column] > 0 {
      loudness[column] = (loudness[column] / weights[column]).squareRoot()
    }
  }

  private mutating func add(_ slice: WaveformSlice, _ index: Int, to column: Int, _ weights: inout [Float]) {
    let top = Float(slice.data[2 * index + 1]) / 32768
    let bottom = Float(slice.data[2 * index]) / 32768
    let rms = Float(slice.rms[index]) / 32768
    let isFirst = weights[column] == 0
    tops[column] = isFirst ? top : max(tops[column], top)
    bottoms[column] = isFirst ? bottom : min(bottoms[column], bottom)
    loudness[column] = (isFirst ? 0 : loudness[column]) + rms * rms
    weights[column] += 1
  }

  /// The columns inside the picture.
  var shown: Range<Int> { 1..<tops.count - 1 }

  /// Multiplies everything and clips it at full scale.
  mutating func amplify(_ factor: Float) {
    guard factor != 1 else { return }
    for column in tops.indices where !tops[column].isNaN {
      tops[column] = min(max(tops[column] * factor, -1), 1)
      bottoms[column] = min(max(bottoms[column] * factor, -1), 1)
      loudness[column] = min(loudness[column] * factor, 1)
    }
  }

  /// The columns with data, as contiguous ranges.
  var runs: [Range<Int>] {
    var runs: [Range<Int>] = []
    var begin: Int?
    for column in tops.indices {
      if tops[column].isNaN {
        if let first = begin { runs.append(first..<column) }
        begin = nil
      } else if begin == nil {
        begin = column
      }
    }
    if let begin { runs.append(begin..<tops.count) }
    return runs
  }

  /// The values of an outline at one position.
  struct Slot {
    let top, bottom, loudness: Float
  }

  /// Returns the values `offset` columns (−½ … ½) from a column's middle, interpolated linearly to the next column in
  /// the run.
  func slot(_ column: Int, _ offset: Float, in run: Range<Int>) -> Slot {
    let other = min(max(offset < 0 ? column - 1 : column + 1, run.lowerBound), run.upperBound - 1)
    let share = abs(offset)
    func between(_ values: [Float]) -> Float { values[column] + (values[other] - values[column]) * share }
    return Slot(top: between(tops), bottom: between(bottoms), loudness: between(loudness))
  }

  /// Closes vertical gaps between columns, which occur if the sound rises or falls faster than the columns overlap:
  /// both are extended to the middle, as a line through the samples would be.
  mutating func join() {
    guard tops.count > 1 else { return }
    for column in 1..<tops.count {
      if bottoms[column] > tops[column - 1] {
        let middle = (bottoms[column] + tops[column - 1]) / 2
        (bottoms[column], tops[column - 1]) = (middle, middle)
      } else if tops[column] < bottoms[column - 1] {
        let middle = (tops[column] + bottoms[column - 1]) / 2
        (tops[column], bottoms[column - 1]) = (middle, middle)
      }
    }
  }

  /// Makes the outline symmetric with the larger magnitude, for bars.
  mutating func mirror() {
    for column in tops.indices where !tops[column].isNaN {
      let largest = max(abs(tops[column]), abs(bottoms[column]))
      (tops[column], bottoms[column]) = (largest, -largest)
    }
  }
}
