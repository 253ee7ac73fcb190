import Glibc

// The time line of an edit. Every box begins half a hop H early and ends half a hop late. Between two of these borders
// T_j, the same boxes apply, with the gain
//
//   G_j[b] = 10^(max(Σ g h(b), −60) / 20)         g: of a box, in dB
//   h(b)   = 1 if bin b is in the box's band, 0 if it is a bin or more away, linear in between
//
// The weight of interval j at frame t is a_j(t) = U(t − T_j) − U(t − T_{j+1}), where U rises from 0 at −H/2 to 1 at H/2
// as half a cosine does. So the weights are never negative and add up to 1, a box has its whole effect from its start
// to its end, and none a hop before and after.

/// The intervals between the borders of boxes.
struct EditIntervals {
  /// One interval.
  struct Interval {
    /// The border before it, and the one after it; far away if there is none.
    var start, end: Int64
    /// Gain minus 1 of each bin.
    var gain: [Float]
  }

  private struct Border {
    var frame: Int64
    var box: Int
    var isStart: Bool
  }

  /// Steps per dB, so that sums have no rounding errors.
  private static let steps = 16_384.0
  private static let far = Int64(1) << 60

  private let frame: AnalysisFrame
  private let boxes: [EditBox]
  private let binsPerHz: Double
  private var borders: [Border] = []
  private var nextBorder = 0
  /// The sum of the gains of the boxes that apply, in steps.
  private var sums: [Int32]

  init(_ edit: SoundEdit, frame: AnalysisFrame, sampleRate: Int) {
    self.frame = frame
    boxes = edit.boxes
    binsPerHz = Double(frame.length) / Double(sampleRate)
    sums = [Int32](repeating: 0, count: frame.binCount)
    let half = Int64(frame.hop / 2), rate = Double(sampleRate)
    func place(_ seconds: Double) -> Int64 { Int64(min(seconds * rate, 0x1p50).rounded()) }
    for (index, box) in boxes.enumerated() {
      let start = box.start.map { place($0) - half } ?? -Self.far
      let end = box.end.map { place($0) + half } ?? Self.far
      borders.append(Border(frame: start, box: index, isStart: true))
      borders.append(Border(frame: max(end, start + 1), box: index, isStart: false))
    }
    borders.sort { ($0.frame, $0.box) < ($1.frame, $1.box) }
  }

  /// Returns the next interval in which anything is turned down; nil if there is none that begins before `limit`.
  mutating func next(before limit: Int64) -> Interval? {
    while nextBorder < borders.count, borders[nextBorder].frame < limit {
      let start = borders[nextBorder].frame
      while nextBorder < borders.count, borders[nextBorder].frame == start {
        apply(borders[nextBorder])
        nextBorder += 1
      }
      if nextBorder < borders.count, sums.contains(where: { $0 != 0 }) {
        return Interval(start: start, end: borders[nextBorder].frame, gain: gain)
      }
    }
    return nil
  }

  private var gain: [Float] {
    sums.map { sum in
      sum == 0 ? 0 : Float(pow(10, max(Double(sum) / Self.steps, SoundEdit.gains.lowerBound) / 20) - 1)
    }
  }

  private mutating func apply(_ border: Border) {
    let box = boxes[border.box]
    let low = box.minHz.map { $0 * binsPerHz } ?? -2, high = box.maxHz.map { $0 * binsPerHz } ?? Double(sums.count) + 1
    let first = max(Int(low.rounded(.down)), 0), last = min(Int(high.rounded(.up)), sums.count - 1)
    guard first <= last else { return }
    for bin in first...last {
      let distance = max(low - Double(bin), Double(bin) - high, 0)
      let sum = Int32((box.gainDB * max(0, 1 - distance) * Self.steps).rounded())
      sums[bin] += border.isStart ? sum : -sum
    }
  }
}

extension EditIntervals.Interval {
  /// Returns a_j of `weights.count` frames from `first` on, and whether any isn't 0.
  func weigh(from first: Int64, hop: Int, _ weights: inout [Float]) -> Bool {
    func rise(_ place: Int64) -> Float {
      let x = Double(place) + Double(hop) / 2
      return x <= 0 ? 0 : x >= Double(hop) ? 1 : Float(0.5 - 0.5 * cos(Double.pi * x / Double(hop)))
    }
    let half = Int64(hop / 2 + 1), last = first + Int64(weights.count)
    if start + half <= first, last <= end - half {
      for index in weights.indices { weights[index] = 1 }
      return true
    }
    var isAny = false
    for index in weights.indices {
      let frame = first + Int64(index)
      weights[index] = rise(frame - start) - rise(frame - end)
      isAny = isAny || weights[index] != 0
    }
    return isAny
  }
}
