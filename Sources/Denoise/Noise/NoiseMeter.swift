/// What the search for noise regions compares.
struct NoiseFrame {
  /// One level per band.
  var levels: BandLevels.Row
  var texture: BandLevels.Texture
  /// The mean square of its samples, in 16-bit steps.
  var meanSquare: Double
  /// Whether it's digital silence, which has no levels.
  var isSilent: Bool { meanSquare <= NoiseRegionFinder.silence }
}

/// The frames that begin in a part of a recording.
package struct NoiseFrames: Sendable {
  /// The end of the part, in frames of the recording.
  fileprivate(set) var end: Int64 = 0
  fileprivate(set) var frames: [NoiseFrame] = []
  /// log2 of each bin of the first frame and of the last one; empty if that is silent.
  fileprivate var first, last: [Float]

  /// Creates a part without frames.
  package init() { (first, last) = ([], []) }
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
    bands?.begin()
    position = frame
  }

  /// Adds the frames that end in the next samples, interleaved whole frames of the recording.
  package mutating func append(_ samples: Span<Int16>, to frames: inout NoiseFrames) {
    position += Int64(samples.count / channels)
    frames.end = position
    measure(samples) { frames.frames.append($0) }
    (frames.first, frames.last) = (bands?.first ?? [], bands?.newest ?? [])
  }

  /// Continues after a part that another meter has measured, and returns its frames.
  mutating func follow(_ part: NoiseFrames) -> [NoiseFrame] {
    var frames = part.frames
    if !frames.isEmpty, let roughness = bands?.follow(first: part.first, newest: part.last) {
      frames[0].texture.roughness = roughness
    }
    cutter.begin(at: part.end)
    position = part.end
    return frames
  }

  /// Completes the frame that begins before the end of a part, with the samples that follow the part.
  package mutating func finish(_ frames: inout NoiseFrames, tail: Span<Int16>) {
    guard cutter.isInFrame else { return }
    let end = frames.end
    append(tail.extracting(0..<min(tail.count, cutter.frameLength * channels)), to: &frames)
    frames.end = end
  }

  /// Calls `body` with each frame that the samples complete.
  @inline(__always)
  mutating func measure(_ samples: Span<Int16>, _ body: (NoiseFrame) -> Void) {
    guard bands != nil else { return }
    var position = 0
    while cutter.fill(from: samples, &position) {
      if cutter.meanSquare > NoiseRegionFinder.silence { bands?.measure(cutter.mix) } else { bands?.skip() }
      if let levels = bands?.levels, let texture = bands?.texture {
        body(NoiseFrame(levels: levels, texture: texture, meanSquare: cutter.meanSquare))
      }
    }
  }
}
