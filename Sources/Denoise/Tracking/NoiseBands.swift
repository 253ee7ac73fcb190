/// Bands of bins, about as wide as those that the ear tells apart, for what noise has in common over frequency.
///
/// The width is one ERB (Glasberg & Moore 1990), 24.7 Hz (4.37 f / 1 kHz + 1), and at least 6 bins. The bin at 0 Hz
/// belongs to none.
struct NoiseBands: Sendable {
  private static let leastWidth = 6

  /// The first bin of each band, followed by the end of the last one.
  let edges: [Int]
  /// Number of bands that begin below 500 Hz.
  let humCount: Int
  /// Number of bands.
  var count: Int { edges.count - 1 }
  /// For each band, the end of the bins whose values lie between it and the next band: the first bin at or above the
  /// next one's middle, or the row's end.
  private let ends: [Int32]
  /// For each bin, how far it is from that band's middle toward the next one's.
  private let shares: [Float]

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
    ends = middles.indices.map { band in
      band + 2 < middles.count ? Int32(middles[band + 1].rounded(.up)) : Int32(frame.binCount)
    }
    var band = 0
    shares = (0..<frame.binCount).map { [ends] bin in
      while bin >= ends[band] { band += 1 }
      guard band + 1 < middles.count else { return 0 }
      return min(1, max(0, (Float(bin) - middles[band]) / (middles[band + 1] - middles[band])))
    }
    self.edges = edges
    humCount = edges.dropLast().filter { Double($0) * hertz < 500 }.count
  }

  /// Returns the mean of a band.
  func mean(_ band: Int, of row: Span<Float>) -> Float {
    var sum: Float = 0
    for bin in edges[band]..<edges[band + 1] { sum += row[bin] }
    return sum / Float(edges[band + 1] - edges[band])
  }

  /// Computes a value for each bin, which between the middles of the bands follows a straight line.
  func spread(_ values: [Float], into row: inout MutableSpan<Float>) {
    precondition(values.count == count && row.count == shares.count)
    unsafe row.withUnsafeMutableBufferPointer { row in
      guard let start = row.baseAddress else { return }
      unsafe loops.spread_bands(start, shares, values, ends, count)
    }
  }
}
