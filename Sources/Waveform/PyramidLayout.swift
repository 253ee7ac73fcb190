// The pyramid file: a recording at 16 resolutions, appended to while it is read by others.
//
// Level n (0 … 15) has points of 256·2^n frames; point q covers the frames q·256·2^n … (q+1)·256·2^n − 1. A point
// holds one 8-byte value (WaveformPoint) per lane. Lanes: a mono recording has one; any other has the mix, then each
// channel. All numbers are little-endian.
//
//   offset  size  header, 4096 bytes
//        0     8  magic "SWPYRAMD"
//        8     4  format version, 1
//       12     4  sample rate
//       16     4  channels
//       20     4  lanes: 1 if channels is 1, else channels + 1
//       24     8  total frames, −1 until the file is finished
//       32        zeros
//     4096        blocks
//
// A block is 510 points of 8 levels: 256 of its finest level, then 128, 64 … 2 of the coarser ones. Block b of the
// lower group (levels 0 … 7) describes the frames from b·65536 on, block p of the upper group (levels 8 … 15) those
// from p·2^24. What lower block b reduces to is point b of level 8. An upper block stands before the 256 lower blocks
// it covers, so 257 blocks form a run, and with B = 510 · lanes · 8 bytes
//
//   upper block p is at   4096 + p · 257 · B
//   lower block b is at   4096 + (b + ⌊b/256⌋ + 1) · B
//   level j of a block    begins at its point 512 − ⌊512 / 2^j⌋   (j = 0 … 7)
//
// Nothing ever moves, positions are 64-bit, and the length of the recording need not be known. Upper points not yet
// made are holes in a sparse file. With `ready` points of level 0 in the file, point q of level n is valid where
// (q + 1)·2^n ≤ ready, or, once the file is finished, where it covers any frame: each level then ends in a partial
// point, weighted by its true frames. Level 15 suffices for 2^24 frames a pixel: that is two points.
//
// Size: 510 · 24 bytes per 65536 stereo frames is 4.67 % of the 16-bit WAV; upper blocks make it 4.69 %.

/// Where everything is in a pyramid file of one shape, counted in 8-byte words.
struct PyramidLayout: Equatable, Sendable {
  static let levels = 16
  static let levelsPerBlock = 8
  static let blockPoints = 510
  static let headerWords: Int64 = 512
  static let magic: UInt64 = 0x44_4d_41_52_59_50_57_53  // "SWPYRAMD", first letter in the lowest byte
  static let version: UInt32 = 1
  /// More than any recording, and small enough that no position overflows.
  static let frameLimit: Int64 = 1 << 48
  static let channelLimit = 1024

  let sampleRate: Int
  let channels: Int
  var lanes: Int { channels == 1 ? 1 : channels + 1 }
  var blockWords: Int64 { Int64(Self.blockPoints * lanes) }

  init(sampleRate: Int, channels: Int) throws(WaveformError) {
    guard (1...Int(Int32.max)).contains(sampleRate), (1...Self.channelLimit).contains(channels) else {
      throw .unsupportedFormat(sampleRate: sampleRate, channels: channels)
    }
    self.sampleRate = sampleRate
    self.channels = channels
  }

  /// The first word of lane 0 of a point.
  @inline(__always)
  func word(level: Int, point: Int64) -> Int64 {
    let inner = level & 7
    let block = point >> Int64(8 - inner)
    let index = point & ((256 >> Int64(inner)) - 1)
    return self.block(upper: level >= Self.levelsPerBlock, block) + (512 - (512 >> Int64(inner)) + index) * Int64(lanes)
  }

  /// The first word of a block.
  @inline(__always)
  func block(upper: Bool, _ index: Int64) -> Int64 {
    Self.headerWords + (upper ? index * 257 : index + index / 256 + 1) * blockWords
  }

  /// Words a reader needs in the file to read the points of `frames` frames, on any level.
  func words(frames: Int64) -> Int64 {
    let points = (frames + 255) / 256
    guard points > 0 else { return Self.headerWords }
    let lastLower = word(level: 0, point: points - 1)
    // The last lower block reaches furthest; within it, the last point of its coarsest level.
    return max(lastLower, word(level: 7, point: (points - 1) >> 7)) + Int64(lanes)
  }

  // MARK: The header

  /// The header's first four words.
  func header(totalFrames: Int64?) -> [UInt64] {
    [
      Self.magic,
      UInt64(Self.version) | UInt64(sampleRate) << 32,
      UInt64(channels) | UInt64(lanes) << 32,
      UInt64(bitPattern: totalFrames ?? -1),
    ]
  }

  /// Reads the header's first four words; everything in them is hostile.
  init(header: Span<UInt64>) throws(WaveformError) {
    guard header.count >= 4, header[0] == Self.magic else { throw .malformedPyramid(field: "magic") }
    guard UInt32(truncatingIfNeeded: header[1]) == Self.version else { throw .malformedPyramid(field: "version") }
    let sampleRate = Int(header[1] >> 32)
    let channels = Int(header[2] & 0xffff_ffff)
    guard (1...Int(Int32.max)).contains(sampleRate) else { throw .malformedPyramid(field: "sample rate") }
    guard (1...Self.channelLimit).contains(channels) else { throw .malformedPyramid(field: "channels") }
    try self.init(sampleRate: sampleRate, channels: channels)
    guard Int(header[2] >> 32) == lanes else { throw .malformedPyramid(field: "lanes") }
    _ = try Self.totalFrames(header[3])
  }

  /// The header's frame count: nil while the file is being written.
  static func totalFrames(_ word: UInt64) throws(WaveformError) -> Int64? {
    let frames = Int64(bitPattern: word)
    guard frames >= -1, frames <= frameLimit else { throw .malformedPyramid(field: "total frames") }
    return frames < 0 ? nil : frames
  }
}
