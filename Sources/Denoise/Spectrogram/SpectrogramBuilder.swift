import Glibc
import Terms

// The values of a tile. With the periodic Hann window w[m] = ½ − ½ cos 2πm/N and the transform X of the samples of a
// lane times w, bin b of column k has the power
//
//   P[b] = 1/n Σ_i |X_i[b]|² (4/N)²         so that a full-scale sine at the frequency of a bin has 1, or 0 dB
//
// and a value is 255 (10 lg P − min) / (max − min), with P a row's mean (see FrequencyRows), rounded and held to
// 0 … 255. Each transform is made of its own samples only, and the power of a column is summed in the order of its
// transforms, so the bits don't depend on the tile, nor on the pieces in which the samples arrive.

/// Computes a tile from the samples that it needs.
///
///     while let frames = builder.nextFrames { /* append all samples of these frames */ }
package struct SpectrogramBuilder: ~Copyable {
  private let tile: SpectrogramTile
  /// Whether all frames from the first transform to the last are read in one go.
  private let isJoined: Bool
  private let rows: [FrequencyRows]
  private let window: [Float]
  private var fft: RealFFT
  /// The samples of each lane from frame `base` on.
  private var lanes: [[Float]]
  private var base: Int64
  /// The next frame to append.
  private var position: Int64
  /// The number of the next transform, counted from the tile's first.
  private var transform = 0
  private var power: [[Float]]
  private var pixels: [UInt8]

  /// Creates a builder. Stretches of frames that are no further apart than `gap` are read in one go, which is quicker
  /// than seeking if the gap is short.
  package init(_ tile: SpectrogramTile, joining gap: Int = 0) {
    self.tile = tile
    isJoined = tile.step - tile.window <= gap
    let length = Double(tile.window)
    let factor = 16 / (length * length * Double(tile.transformsPerColumn))
    let count = tile.lanes, height = tile.height
    rows = (0..<count).map { lane in
      FrequencyRows(of: tile, height: (lane + 1) * height / count - lane * height / count, factor: factor)
    }
    window = (0..<tile.window).map { Float(0.5 - 0.5 * cos(2 * Double.pi * Double($0) / length)) }
    fft = RealFFT(length: tile.window)
    lanes = [[Float]](repeating: [], count: count)
    power = [[Float]](repeating: [Float](repeating: 0, count: tile.window / 2 + 1), count: count)
    pixels = [UInt8](repeating: 0, count: tile.byteCount)
    base = tile.startFrame - Int64(tile.window / 2)
    position = max(base, 0)
    padStart()
    transformReady()
  }

  private var transformCount: Int { tile.columnCount * tile.transformsPerColumn }

  /// The first frame that a transform covers.
  private func start(of transform: Int) -> Int64 {
    tile.startFrame + Int64(transform) * Int64(tile.step) - Int64(tile.window / 2)
  }

  /// The frames of the recording to append next; nil once the tile is finished.
  package var nextFrames: Range<Int64>? {
    guard transform < transformCount else { return nil }
    let first = isJoined ? position : max(start(of: transform), position)
    let end = start(of: isJoined ? transformCount - 1 : transform) + Int64(tile.window)
    return first..<min(end, tile.endFrame)
  }

  /// Appends interleaved samples of whole frames, from the first of `nextFrames` on.
  package mutating func append(_ samples: Span<Float>) {
    guard let wanted = nextFrames else { return }
    if wanted.lowerBound != position { skip(to: wanted.lowerBound) }
    append(lanesOf: samples)
    position += Int64(samples.count / tile.channelCount)
    transformReady()
  }

  /// Returns the finished tile: `height` rows of `columnCount` values, the highest frequency first.
  package consuming func finish() -> [UInt8] {
    precondition(transform == transformCount, "all samples were appended")
    return pixels
  }

  // MARK: Samples

  private mutating func padStart() {
    guard base < 0 else { return }
    for lane in lanes.indices { lanes[lane] = [Float](repeating: 0, count: Int(-base)) }
  }

  private mutating func skip(to frame: Int64) {
    for lane in lanes.indices { lanes[lane].removeAll(keepingCapacity: true) }
    (base, position) = (frame, frame)
  }

  private mutating func append(lanesOf samples: Span<Float>) {
    let channels = tile.channelCount, frames = samples.count / channels
    for lane in lanes.indices {
      var target: [Float] = []
      swap(&target, &lanes[lane])
      let start = target.count
      target.append(contentsOf: repeatElement(0, count: frames))
      var all = target.mutableSpan
      var room = all._mutatingExtracting(start..<start + frames)
      switch tile.channels {
      case .mix: Self.mix(samples, channels, into: &room)
      case .split: Self.take(lane, of: channels, from: samples, into: &room)
      case .channel(let channel): Self.take(channel, of: channels, from: samples, into: &room)
      }
      swap(&target, &lanes[lane])
    }
  }

  private static func mix(_ samples: Span<Float>, _ channels: Int, into lane: inout MutableSpan<Float>) {
    guard channels != 2 else {
      for frame in 0..<lane.count { lane[frame] = 0.5 * (samples[2 &* frame] + samples[2 &* frame &+ 1]) }
      return
    }
    let share = 1 / Float(channels)
    for frame in 0..<lane.count {
      var sum: Float = 0
      for channel in 0..<channels { sum += samples[frame &* channels &+ channel] }
      lane[frame] = channels == 1 ? sum : sum * share
    }
  }

  private static func take(
    _ channel: Int, of channels: Int, from samples: Span<Float>, into lane: inout MutableSpan<Float>
  ) {
    for frame in 0..<lane.count { lane[frame] = samples[frame &* channels &+ channel] }
  }

  // MARK: Transforms

  /// Makes the transforms whose samples are there, then forgets the samples before the next one's.
  private mutating func transformReady() {
    while transform < transformCount {
      let start = start(of: transform), end = min(start + Int64(tile.window), tile.endFrame)
      // After the recording's end, there is nothing to wait for.
      if end > max(start, 0) {
        guard base <= start, position >= end else { break }
      }
      for lane in lanes.indices { addPower(of: lane, from: start, to: max(end, start)) }
      transform += 1
      if transform.isMultiple(of: tile.transformsPerColumn) { finishColumn(transform / tile.transformsPerColumn - 1) }
    }
    guard transform < transformCount else { return }
    let unneeded = Int(min(start(of: transform) - base, Int64(lanes[0].count)))
    guard unneeded > 0 else { return }
    for lane in lanes.indices { lanes[lane].removeFirst(unneeded) }
    base += Int64(unneeded)
  }

  private mutating func addPower(of number: Int, from start: Int64, to end: Int64) {
    let first = Int(start - base), count = Int(end - start)
    guard count > 0 else { return }
    let lane = lanes[number], window = window
    guard lane[first..<first + count].contains(where: { $0 != 0 }) else { return }
    var power: [Float] = []
    swap(&power, &self.power[number])
    fft.forward({ target in
      var own = target._mutatingExtracting(0..<count)
      Kernels.multiply(
        lane.span.extracting(first..<first + count), window.span.extracting(0..<count), into: &own)
      for index in count..<target.count { target[index] = 0 }
    }) { spectrum in
      var power = power.mutableSpan
      for bin in 0..<power.count {
        let real = spectrum[2 &* bin], imaginary = spectrum[2 &* bin &+ 1]
        power[bin] += real * real + imaginary * imaginary
      }
    }
    swap(&power, &self.power[number])
  }

  private mutating func finishColumn(_ column: Int) {
    let range = Float(255 / (tile.maxDB - tile.minDB)), low = Float(tile.minDB), width = tile.columnCount
    var pixels: [UInt8] = []
    swap(&pixels, &self.pixels)
    var top = 0
    for lane in power.indices {
      let own = power[lane]
      rows[lane].apply(to: own.span) { row, power in
        // Samples may be so large that their power is infinite, or the difference of two such numbers.
        let level = power > 0 ? (10 * log10(power) - low) * range : power.isNaN ? 255 : 0
        pixels[(top + row) * width + column] = UInt8(min(max(level, 0), 255).rounded())
      }
      top += rows[lane].count
      power[lane] = [Float](repeating: 0, count: own.count)
    }
    swap(&pixels, &self.pixels)
  }
}
