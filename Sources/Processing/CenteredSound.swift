import AudioIO
import Terms

/// A file's sound without its DC offset, where there is one for certain; see SlowMean. Without one, the samples are
/// unchanged.
///
/// Reads 2 s before the first frame and after the last one, so that a part has the same samples as in the whole.
struct CenteredSound: ~Copyable {
  /// A block is passed on once the ones that its offset depends on are there.
  private static let kept = SlowMean.reach + 1

  /// The file. Its own position is ahead.
  private(set) var reader: AudioReader
  /// The next frame to pass on.
  private(set) var position: Int64
  private let isCentering: Bool
  private let channels: Int
  private let blockFrames: Int
  /// The frames that may be read. Blocks are counted from its start.
  private var range: Range<Int64> = 0..<(.max)
  private var means: SlowMean
  /// The newest blocks in a ring, interleaved.
  private var blocks: [Float]
  /// Frames of the block after those in `means`.
  private var filled = 0
  private var isAtEnd = false
  private var centered: [Float] = []
  /// The sum of the offsets that were removed from each channel, one for each frame.
  private var removed: [Double]
  private var removedFrames: [Int64]

  /// - Parameters:
  ///   - reader: the file; where it is, the sound begins.
  ///   - isCentering: whether to remove an offset.
  init(_ reader: consuming AudioReader, isCentering: Bool = true) {
    let format = reader.format
    channels = format.channels
    blockFrames = SlowMean.blockFrames(sampleRate: format.sampleRate, channels: channels)
    self.isCentering = isCentering
    position = reader.position
    range = reader.position..<(.max)
    means = SlowMean(channels: channels, firstBlock: 0)
    blocks = [Float](repeating: 0, count: isCentering ? Int(Self.kept) * blockFrames * channels : 0)
    removed = [Double](repeating: 0, count: channels)
    removedFrames = [Int64](repeating: 0, count: channels)
    self.reader = reader
  }

  /// Continues at `frame`.
  /// - Parameter range: the frames that may be read to learn the offset.
  mutating func seek(to frame: Int64, within range: Range<Int64> = 0..<(.max)) throws(AudioIOError) {
    let block = (frame - range.lowerBound) / Int64(blockFrames)
    let first = isCentering ? max(0, block - SlowMean.reach) : block
    let start = isCentering ? range.lowerBound + first * Int64(blockFrames) : frame
    if start != reader.position { try reader.seek(to: start) }
    self.range = range
    means = SlowMean(channels: channels, firstBlock: first)
    (position, filled, isAtEnd) = (frame, 0, false)
  }

  /// Passes up to `frames` frames to `body`: as they are in the file, and without their offset. Both are interleaved,
  /// full scale ±1, every sample finite.
  ///
  /// Returns the number of frames, or 0 at the end, without calling `body`.
  mutating func read<E: Error>(
    upTo frames: Int64 = .max, _ body: (_ original: Span<Float>, _ centered: Span<Float>) throws(E) -> Void
  ) throws(E) -> Int {
    guard isCentering else {
      let wanted = Int(min(frames, range.upperBound - position, Int64(reader.framesPerRead)))
      let got = try reader.readFloat(upTo: wanted) { (samples) throws(E) in try body(samples, samples) }
      position += Int64(got)
      return got
    }
    let block = (position - range.lowerBound) / Int64(blockFrames)
    while !isAtEnd, means.nextBlock <= block + SlowMean.reach { fill() }
    let first = Int(position - range.lowerBound - block * Int64(blockFrames))
    let end = block < means.nextBlock ? blockFrames : block == means.nextBlock ? filled : 0
    let count = Int(min(frames, Int64(end - first)))
    guard count > 0 else { return 0 }
    let place = Int(block % Self.kept) * blockFrames + first
    let left = means.offsets(atStartOf: block), right = means.offsets(atStartOf: block + 1)
    let original = place * channels..<(place + count) * channels
    position += Int64(count)
    guard left.contains(where: { $0 != 0 }) || right.contains(where: { $0 != 0 }) else {
      try body(blocks.span.extracting(original), blocks.span.extracting(original))
      return count
    }
    center(original, first, from: left, to: right)
    try body(blocks.span.extracting(original), centered.span.extracting(0..<original.count))
    return count
  }

  /// A warning that names the offset of each channel that had one; nil if there was none.
  var warning: Warning? {
    let found = (0..<channels).filter { removedFrames[$0] > 0 }
    guard !found.isEmpty else { return nil }
    let places = found.prefix(4).map { channel in
      let percent = (removed[channel] / Double(removedFrames[channel]) * 10_000).rounded() / 100
      return "\(percent) % of full scale in channel \(channel)"
    }
    let more = found.count > 4 ? " and \(found.count - 4) more" : ""
    return .offset(places.joined(separator: ", ") + more)
  }

  /// Reads up to the end of a block.
  private mutating func fill() {
    let start = (Int(means.nextBlock % Self.kept) * blockFrames + filled) * channels
    let wanted = Int(min(Int64(blockFrames - filled), range.upperBound - reader.position))
    var blocks: [Float] = []
    swap(&blocks, &self.blocks)
    let got = reader.readFloat(upTo: wanted) { samples in
      var all = blocks.mutableSpan
      var target = all._mutatingExtracting(start..<(start + samples.count))
      for index in 0..<samples.count { target[index] = samples[index] }
    }
    filled += got
    isAtEnd = got == 0
    if filled == blockFrames {
      let end = start + got * channels
      means.append(blocks.span.extracting((end - blockFrames * channels)..<end))
      filled = 0
    }
    swap(&blocks, &self.blocks)
  }

  /// Removes an offset that goes from `left` to `right` in the course of a block, of which `samples` begins at frame
  /// `first`.
  private mutating func center(_ samples: Range<Int>, _ first: Int, from left: [Float], to right: [Float]) {
    if centered.count < samples.count { centered = [Float](repeating: 0, count: blockFrames * channels) }
    let count = samples.count / channels
    for channel in 0..<channels {
      let slope = (right[channel] - left[channel]) / Float(blockFrames)
      for frame in 0..<count {
        let index = frame * channels + channel
        centered[index] = blocks[samples.lowerBound + index] - (left[channel] + slope * Float(first + frame))
      }
      guard left[channel] != 0 || right[channel] != 0 else { continue }
      let middle = left[channel] + slope * (Float(first) + 0.5 * Float(count))
      removed[channel] += Double(middle) * Double(count)
      removedFrames[channel] += Int64(count)
    }
  }
}
