/// Bands of bins, about as wide as those that the ear tells apart, for what noise has in common over frequency.
///
/// The width is one ERB (Glasberg & Moore 1990), 24.7 Hz (4.37 f / 1 kHz + 1), and at least 6 bins. The bin at 0 Hz
/// belongs to none.
struct NoiseBands: Sendable {
  private static let leastWidth = 6

  /// The first bin of each band, followed by the end of the last one.
  let edges: [Int]
  /// Number of bands.
  var count: Int { edges.count - 1 }
  /// For each bin, the band whose middle is below it (or the first), and how far it is toward the next band's.
  private let places: [(band: Int, share: Float)]

  init(frame: AnalysisFrame, sampleRate: Int) {
    let hertz = Double(sampleRate) / Double(frame.length), end = frame.binCount - 1
    var edges = [1]
    while let start = edges.last, start < end {
      let width = 24.7 * (4.37 * Double(start) * hertz / 1000 + 1) / hertz
      edges.append(min(end, start + max(Self.leastWidth, Int(min(width, Double(end)).rounded()))))
    }
    // A narrow rest belongs to the last band.
    if edges.count > 2, edges[edges.count - 1] - edges[edges.count - 2] < Self.leastWidth / 2 {
      edges.remove(at: edges.count - 2)
    }
    let middles = (1..<edges.count).map { Float(edges[$0 - 1] + edges[$0] - 1) / 2 }
    places = (0..<frame.binCount).map { bin in
      let above = middles.firstIndex { $0 > Float(bin) } ?? middles.count - 1
      let band = max(0, above - 1)
      guard band + 1 < middles.count else { return (band, 0) }
      let share = (Float(bin) - middles[band]) / (middles[band + 1] - middles[band])
      return (band, min(1, max(0, share)))
    }
    self.edges = edges
  }

  /// Returns the mean of a band.
  func mean(_ band: Int, of row: Span<Float>) -> Float {
    var sum: Float = 0
    for bin in edges[band]..<edges[band + 1] { sum += row[bin] }
    return sum / Float(edges[band + 1] - edges[band])
  }

  /// Computes a value for each bin, which between the middles of the bands follows a straight line.
  func spread(_ values: [Float], into row: inout MutableSpan<Float>) {
    for bin in 0..<row.count {
      let (band, share) = places[bin]
      let low = values[band]
      row[bin] = share > 0 ? low + share * (values[band + 1] - low) : low
    }
  }
}
