/// How far the noise of each band is from the profile, in octaves of power, over a number of ticks.
struct NoiseChanges {
  let tickCount: Int
  private let bandCount: Int
  /// `[band][tick]`
  private(set) var values: [Float]

  /// Creates changes of 0.
  init(bandCount: Int, tickCount: Int) {
    self.bandCount = bandCount
    self.tickCount = tickCount
    values = [Float](repeating: 0, count: bandCount * tickCount)
  }

  /// The change of a band at a tick.
  subscript(band: Int, tick: Int) -> Float {
    get { values[band * tickCount + tick] }
    set { values[band * tickCount + tick] = newValue }
  }

  /// Where the changes of a band at some ticks are in `values`.
  func places(of band: Int, _ ticks: Range<Int>) -> Range<Int> {
    (band * tickCount + ticks.lowerBound)..<(band * tickCount + ticks.upperBound)
  }

  /// Returns the mean of a band over some ticks.
  func mean(_ band: Int, over ticks: Range<Int>) -> Float {
    var sum: Float = 0
    let changes = values.span.extracting(places(of: band, ticks))
    for index in changes.indices { sum += changes[index] }
    return sum / Float(ticks.count)
  }

  /// Replaces each value by the median of those within `reach` ticks. A band whose values are all within `ignored` is
  /// set to 0, which saves the search.
  mutating func takeMedians(reach: Int, ignoring ignored: ClosedRange<Float>) {
    for band in 0..<bandCount {
      let all = values[band * tickCount..<(band + 1) * tickCount]
      if all.allSatisfy({ ignored.contains($0) }) {
        for tick in 0..<tickCount { self[band, tick] = 0 }
      } else {
        takeMedians(band, of: Array(all), reach)
      }
    }
  }

  private mutating func takeMedians(_ band: Int, of all: [Float], _ reach: Int) {
    var sorted = all[..<min(reach, tickCount)].sorted()
    for tick in 0..<tickCount {
      let new = tick + reach < tickCount ? all[tick + reach] : nil
      let old = tick > reach ? all[tick - reach - 1] : nil
      switch (old, new) {
      case (let old?, let new?): Self.replace(old, by: new, in: &sorted)
      case (nil, let new?): sorted.insert(new, at: Self.place(of: new, in: sorted))
      case (let old?, nil): sorted.remove(at: Self.place(of: old, in: sorted))
      case (nil, nil): break
      }
      self[band, tick] = sorted[sorted.count / 2]
    }
  }

  /// Replaces a value of a sorted array, and moves only those between the two places.
  private static func replace(_ old: Float, by new: Float, in sorted: inout [Float]) {
    var place = place(of: old, in: sorted)
    while place + 1 < sorted.count, sorted[place + 1] < new {
      sorted[place] = sorted[place + 1]
      place += 1
    }
    while place > 0, sorted[place - 1] > new {
      sorted[place] = sorted[place - 1]
      place -= 1
    }
    sorted[place] = new
  }

  /// Returns the index of the first value that isn't less.
  private static func place(of value: Float, in sorted: [Float]) -> Int {
    var low = 0, high = sorted.count
    while low < high {
      let middle = (low + high) / 2
      if sorted[middle] < value { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
