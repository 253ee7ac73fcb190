/// The levels of the frames that begin in a part of a recording.
package struct NoiseFrames: Sendable {
  /// The end of the part, in frames of the recording.
  fileprivate(set) var end: Int64 = 0
  /// For each frame, one level per band.
  fileprivate(set) var levels: [BandLevels.Row] = []
  /// For each frame, the mean square of its samples, in 16-bit steps.
  fileprivate(set) var meanSquares: [Double] = []

  /// Creates a part without frames.
  package init() {}
}

/// Measures the frames that the search for noise regions compares, in one part of a recording after another. The parts
/// may be measured on several cores. Not thread-safe.
package struct NoiseMeter: ~Copyable {
  private(set) var cutter: SparseFrames
  /// Nil if the sample rate is too low for the search.
  private var bands: BandLevels?
  private(set) var bandCount = 0
  private let channels: Int
  private var position: Int64 = 0

  /// Creates a meter. Its parameters are those of a `NoiseRegionFinder`.
  package init(sampleRate: Int, channels: Int) {
    self.channels = channels
    cutter = SparseFrames(sampleRate: sampleRate, channels: channels)
    guard sampleRate >= 2000 else { return }
    let bands = BandLevels(length: cutter.length, sampleRate: cutter.sampleRate)
    bandCount = bands.count
    self.bands = consume bands
  }

  /// Returns the number of the recording's frames that `finish` needs after a part.
  package static func tailFrames(sampleRate: Int, channels: Int) -> Int {
    SparseFrames(sampleRate: sampleRate, channels: channels).frameLength
  }

  /// Continues at a frame of the recording.
  package mutating func begin(at frame: Int64) {
    cutter.begin(at: frame)
    position = frame
  }

  /// Adds the frames that end in the next samples, interleaved whole frames of the recording.
  package mutating func append(_ samples: Span<Int16>, to frames: inout NoiseFrames) {
    position += Int64(samples.count / channels)
    frames.end = position
    measure(samples) { levels, meanSquare in
      frames.levels.append(levels)
      frames.meanSquares.append(meanSquare)
    }
  }

  /// Completes the frame that begins before the end of a part, with the samples that follow the part.
  package mutating func finish(_ frames: inout NoiseFrames, tail: Span<Int16>) {
    guard cutter.isInFrame else { return }
    let end = frames.end
    append(tail.extracting(0..<min(tail.count, cutter.frameLength * channels)), to: &frames)
    frames.end = end
  }

  /// Calls `body` with the levels and the mean square of each frame that the samples complete.
  @inline(__always)
  mutating func measure(_ samples: Span<Int16>, _ body: (BandLevels.Row, Double) -> Void) {
    guard bands != nil else { return }
    var position = 0
    while cutter.fill(from: samples, &position) {
      // Digital silence has no levels.
      if cutter.meanSquare > NoiseRegionFinder.silence { bands?.measure(cutter.mix) }
      if let levels = bands?.levels { body(levels, cutter.meanSquare) }
    }
  }
}
