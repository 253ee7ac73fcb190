// Pixels of any scale from points of powers of two.
//
// A pixel is the points a ..< b of level 0. Its dyadic cover is found from the bottom up: where a is odd, point a of
// this level is taken and a moves on; where b is odd, point b − 1 is taken and b moves back; then both are halved and
// the next level goes on: at most two points a level. Where b is the end of the whole recording it is not taken but
// rounded up instead, since the next level has a partial point for it.
//
// Peaks of peaks are exact. RMS and average are weighted by the points' true frames:
//   rms = √(Σ fᵢ·rᵢ² / Σ fᵢ),  average = Σ fᵢ·aᵢ / Σ fᵢ

struct PointReader {
  private let layout: PyramidLayout
  private let window: WaveformWindow
  /// Points of level 0 that exist, the partial one included; it is there only in a complete recording.
  private let points: Int64
  private let frames: Int64

  init(layout: PyramidLayout, window: WaveformWindow) {
    self.layout = layout
    self.window = window
    frames = window.extent.availableFrames
    points = window.extent.isComplete ? (frames + 255) / 256 : frames / 256
  }

  func read(_ words: Span<UInt64>, into slice: inout WaveformSlice) {
    let lanes: Range<Int>
    switch window.query.channels {
    case .mix: lanes = 0..<1
    case .split: lanes = layout.channels == 1 ? 0..<1 : 1..<layout.lanes
    case .channel(let channel): lanes = layout.channels == 1 ? 0..<1 : channel + 1..<channel + 2
    }
    let scale = Int64(window.scale)
    for pixel in window.firstPixel..<window.firstPixel + Int64(window.pixelCount) {
      let first = pixel * scale / 256
      let last = min((pixel + 1) * scale / 256, points)
      for lane in lanes { slice.append(self.pixel(words, first..<last, lane: lane)) }
    }
  }

  private func pixel(_ words: Span<UInt64>, _ range: Range<Int64>, lane: Int) -> WaveformPoint {
    if range.count == 1 { return point(words, 0, range.lowerBound, lane) }
    var cover = Cover()
    var (low, high, level) = (range.lowerBound, range.upperBound, 0)
    let atEnd = window.extent.isComplete && high == points
    while low < high {
      if level == PyramidLayout.levels - 1 {
        for index in low..<high { take(words, level, index, lane, into: &cover) }
        break
      }
      if low & 1 == 1 {
        take(words, level, low, lane, into: &cover)
        low += 1
      }
      if high & 1 == 1 {
        if atEnd {
          high += 1
        } else if low < high {
          high -= 1
          take(words, level, high, lane, into: &cover)
        }
      }
      (low, high, level) = (low >> 1, high >> 1, level + 1)
    }
    return cover.point
  }

  @inline(__always)
  private func take(_ words: Span<UInt64>, _ level: Int, _ index: Int64, _ lane: Int, into cover: inout Cover) {
    let length = Int64(PeakKernel.pointFrames) << Int64(level)
    cover.add(point(words, level, index, lane), frames: min(length, frames - index * length))
  }

  @inline(__always)
  private func point(_ words: Span<UInt64>, _ level: Int, _ index: Int64, _ lane: Int) -> WaveformPoint {
    WaveformPoint(word: UInt64(littleEndian: words[Int(layout.word(level: level, point: index)) + lane]))
  }
}

/// Points that together make a pixel.
private struct Cover {
  private var low = Int16.max
  private var high = Int16.min
  private var frames = 0.0
  private var squares = 0.0
  private var absolutes = 0.0

  @inline(__always)
  mutating func add(_ point: WaveformPoint, frames count: Int64) {
    low = min(low, point.minimum)
    high = max(high, point.maximum)
    let (weight, rms) = (Double(count), Double(point.rms))
    frames += weight
    squares += weight * rms * rms
    absolutes += weight * Double(point.average)
  }

  var point: WaveformPoint {
    WaveformPoint(
      minimum: low, maximum: high, rms: UInt16((squares / frames).squareRoot() + 0.5),
      average: UInt16(absolutes / frames + 0.5))
  }
}
