// From a slice's pixels to a picture's columns.
//
// A picture shows exactly the window that was asked, so its columns seldom begin where a slice's pixels do. Column i
// covers the frames s + i·c … s + (i + 1)·c, both real numbers. Every pixel of the slice goes to the column that its
// centre lies in, whole: so no peak is lost, none is drawn twice, and each is at most half a pixel out of place. A
// column without one, which there is where pixels are wider, is like the pixel that its own centre lies in.
//
// On either side stands one column more than the picture has, where the recording goes on: outlines lead there, so that
// pictures laid side by side join.

/// One lane's outline and loudness, column by column, full scale ±1; NaN where there is nothing.
///
/// The picture's column i is at i + 1; those at the ends lie outside it.
struct Envelope: Equatable {
  private(set) var tops: [Float]
  private(set) var bottoms: [Float]
  /// Between 0 and the larger of the two.
  private(set) var loudness: [Float]

  /// `columns` columns of `framesPerColumn` frames from frame `start` on, of one lane of a slice with peaks and RMS.
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
      // The last points are whole ones, and may make a pixel that begins where the recording ends.
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

  /// The columns of the picture itself.
  var shown: Range<Int> { 1..<tops.count - 1 }

  /// Multiplies everything, and cuts it off at full scale.
  mutating func amplify(_ factor: Float) {
    guard factor != 1 else { return }
    for column in tops.indices where !tops[column].isNaN {
      tops[column] = min(max(tops[column] * factor, -1), 1)
      bottoms[column] = min(max(bottoms[column] * factor, -1), 1)
      loudness[column] = min(loudness[column] * factor, 1)
    }
  }

  /// Columns that are there, in unbroken runs.
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

  /// An outline's values at one place.
  struct Slot {
    let top, bottom, loudness: Float
  }

  /// The values at `offset` columns (−½ … ½) from a column's middle, on straight lines to its neighbours' in the run.
  func slot(_ column: Int, _ offset: Float, in run: Range<Int>) -> Slot {
    let other = min(max(offset < 0 ? column - 1 : column + 1, run.lowerBound), run.upperBound - 1)
    let share = abs(offset)
    func between(_ values: [Float]) -> Float { values[column] + (values[other] - values[column]) * share }
    return Slot(top: between(tops), bottom: between(bottoms), loudness: between(loudness))
  }

  /// Closes the gaps between columns one above the other, where sound rises or falls faster than they overlap: both
  /// reach to the middle, as a line through the samples would.
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

  /// The same distance up and down, the larger one: what bars show.
  mutating func mirror() {
    for column in tops.indices where !tops[column].isNaN {
      let largest = max(abs(tops[column]), abs(bottoms[column]))
      (tops[column], bottoms[column]) = (largest, -largest)
    }
  }
}
