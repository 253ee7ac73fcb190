// The pyramid file, version 2: a recording at 16 resolutions, which can be read while it is being written.
//
// Level n (0 … 15) has points of 256·2^n frames; point q covers frames q·256·2^n … (q+1)·256·2^n − 1. A point contains
// one 8-byte value (WaveformPoint) per lane. A mono recording has one lane; any other has the mix, then each channel.
// All numbers are little-endian. The file consists of pages of 4096 bytes; page 0 is the header:
//
//   offset  size  header
//        0     8  magic "SWPYRAMD"
//        8     4  format version, 2
//       12     4  sample rate
//       16     4  channels
//       20     4  lanes: 1 if channels is 1, else channels + 1
//       24     8  XXH64 of the 24 bytes before it
//       32     8  total frames, −1 until the file is finished
//       40     8  XXH64 of the 40 bytes before it; 0 until the file is finished
//       48        zeros
//
// A block is 510 points of 8 levels: 256 of its finest level, then 128, 64 … 2 of the coarser ones. Block b of the
// lower group (levels 0 … 7) describes the frames from b·65536 on, block p of the upper group (levels 8 … 15) those
// from p·2^24. Lower block b reduces to point b of level 8. Each lane of a block has its own page:
//
//   offset  size  page
//        0  4080  510 points of one lane; level j of the block begins at its point 512 − ⌊512 / 2^j⌋  (j = 0 … 7)
//     4080     8  the page's own number
//     4088     8  XXH64 of the 4088 bytes before it; 0 until the page is final
//
// An upper block precedes the 256 lower blocks that it covers, so 257 blocks form a group:
//
//   page of lane l of upper block p   1 + p · 257 · lanes + l
//   page of lane l of lower block b   1 + (b + ⌊b/256⌋ + 1) · lanes + l
//
// Nothing is ever moved, positions are 64-bit, and the length of the recording needn't be known in advance. A finished
// file ends with the last page of its last lower block; for zero frames it is just a header.
//
// While the file grows and contains `ready` points of level 0, point q of level n is valid if (q + 1)·2^n ≤ ready. Once
// it is finished, a point is valid if it covers any frame: each level then ends with a partial point, weighted by its
// actual frames. Level 15 suffices for 2^24 frames per pixel, which is two points.
//
// Verification: a page is final when its last point is made, or when the file is finished. The writer writes its
// checksum with that point, before it reports the point as ready, and never writes the page again. So a reader verifies
// lower block b if (b + 1)·256 ≤ ready, upper block p if (p + 1)·65536 ≤ ready, and all blocks once the file is
// finished. If the number or the checksum is wrong, nothing of the page is used. The last block of each group has no
// checksum while it is being filled. Its valid points are only ever rewritten with the same bytes, so a reader may use
// them while the writer writes the next ones. They are at most minutes old, usually still in the page cache, and will
// be verified later. The header's second checksum is written last, once all pages are on disk; without it the file
// isn't finished, whatever else it contains. Every byte of a finished file is covered.
//
// XXH64 (XXH64.swift) needs no library and takes about as long as copying the page. 64 bits miss one random error in
// 1.8e19.
//
// Size: 4096 · 3 bytes per 65536 stereo frames is 4.69 % of the 16-bit WAV; upper blocks make it 4.71 %.
//
// Version 1 had a header of 32 bytes and zeros, blocks without page numbers and checksums, and lanes interleaved point
// by point. It can't be read; such a file is rebuilt from its recording.

/// The positions of all data in a pyramid file of one shape.
struct PyramidLayout: Equatable, Sendable {
  static let levels = 16
  static let levelsPerBlock = 8
  /// An upper block and the lower ones that it covers.
  static let blocksPerGroup: Int64 = 257
  static let blockPoints = 510
  /// Frames per lower block.
  static let blockFrames: Int64 = 65_536
  static let pageWords = 512
  static let pageBytes: Int64 = 4096
  static let magic: UInt64 = 0x44_4d_41_52_59_50_57_53  // "SWPYRAMD", first letter in the lowest byte
  static let version: UInt32 = 2
  /// More than any recording has, and small enough that no position overflows.
  static let frameLimit: Int64 = 1 << 48
  static let channelLimit = 1024

  let sampleRate: Int
  let channels: Int
  var lanes: Int { channels == 1 ? 1 : channels + 1 }

  init(sampleRate: Int, channels: Int) throws(WaveformError) {
    guard (1...Int(Int32.max)).contains(sampleRate), (1...Self.channelLimit).contains(channels) else {
      throw .unsupportedFormat(sampleRate: sampleRate, channels: channels)
    }
    self.sampleRate = sampleRate
    self.channels = channels
  }

  /// Returns the block that contains a point, counted within its group.
  @inline(__always)
  static func block(level: Int, point: Int64) -> Int64 { point >> Int64(8 - level & 7) }

  /// Returns the index of a point's word in its lane's page.
  @inline(__always)
  static func word(level: Int, point: Int64) -> Int {
    let inner = level & 7
    return 512 - (512 >> inner) + Int(truncatingIfNeeded: point) & ((256 >> inner) - 1)
  }

  /// Returns the page of lane 0 of a block; the other lanes follow.
  @inline(__always)
  func page(upper: Bool, block: Int64) -> Int64 {
    1 + (upper ? block * Self.blocksPerGroup : block + block >> 8 + 1) * Int64(lanes)
  }

  /// Whether a page won't change any more, and so has a checksum, once the file has this many whole points of level 0.
  func isFinal(page: Int64, points: Int64) -> Bool {
    let (group, index, _) = place(page: page)
    return index == 0 ? (group + 1) << 16 <= points : (group << 8 + Int64(index)) << 8 <= points
  }

  /// Returns the group of a page's block, the block's index there, which is 0 for the upper one, and the page's lane.
  func place(page: Int64) -> (group: Int64, index: Int, lane: Int) {
    let (unit, lane) = (page - 1).quotientAndRemainder(dividingBy: Int64(lanes))
    return (unit / Self.blocksPerGroup, Int(unit % Self.blocksPerGroup), Int(lane))
  }

  /// Number of pages in a finished file, including its header.
  func pages(frames: Int64) -> Int64 {
    frames == 0 ? 1 : page(upper: false, block: (frames - 1) >> 16) + Int64(lanes)
  }

  // MARK: Checksums

  /// Sets the numbers and checksums of consecutive final pages, the first of which is `number`. `range`: the pages'
  /// words; nil for all.
  static func seal(_ pages: inout [UInt64], in range: Range<Int>? = nil, from number: Int64) {
    let range = range ?? 0..<pages.count
    for index in 0..<range.count / pageWords {
      let first = range.lowerBound + index * pageWords
      pages[first + blockPoints] = UInt64(number + Int64(index)).littleEndian
      pages[first + blockPoints + 1] = XXH64.hash(pages.span.extracting(first...first + blockPoints)).littleEndian
    }
  }

  /// Whether a final page is what was written.
  static func isSound(_ page: Span<UInt64>, number: Int64) -> Bool {
    UInt64(littleEndian: page[blockPoints]) == UInt64(number)
      && UInt64(littleEndian: page[blockPoints + 1]) == XXH64.hash(page.extracting(...blockPoints))
  }

  // MARK: The header

  /// Returns the header as stored in the file.
  func header(totalFrames: Int64?) -> [UInt64] {
    var words = [UInt64](repeating: 0, count: Self.pageWords)
    words[0] = Self.magic.littleEndian
    words[1] = (UInt64(Self.version) | UInt64(sampleRate) << 32).littleEndian
    words[2] = (UInt64(channels) | UInt64(lanes) << 32).littleEndian
    words[3] = XXH64.hash(words.span.extracting(..<3)).littleEndian
    words[4] = UInt64(bitPattern: totalFrames ?? -1).littleEndian
    if totalFrames != nil { words[5] = XXH64.hash(words.span.extracting(..<5)).littleEndian }
    return words
  }

  /// Parses the constant part of the header, treating all of it as untrusted.
  init(header: Span<UInt64>) throws(WaveformError) {
    guard header.count == Self.pageWords, UInt64(littleEndian: header[0]) == Self.magic else {
      throw .malformedPyramid(field: "magic")
    }
    let (shape, lanes) = (UInt64(littleEndian: header[1]), UInt64(littleEndian: header[2]))
    let version = UInt32(truncatingIfNeeded: shape)
    guard version != 1 else { throw .outdatedPyramid(version: 1) }
    guard version == Self.version else { throw .malformedPyramid(field: "version") }
    guard UInt64(littleEndian: header[3]) == XXH64.hash(header.extracting(..<3)) else {
      throw .malformedPyramid(field: "checksum")
    }
    guard (1...UInt64(Int32.max)).contains(shape >> 32) else { throw .malformedPyramid(field: "sample rate") }
    guard (1...UInt64(Self.channelLimit)).contains(lanes & 0xffff_ffff) else {
      throw .malformedPyramid(field: "channels")
    }
    try self.init(sampleRate: Int(shape >> 32), channels: Int(lanes & 0xffff_ffff))
    guard Int(lanes >> 32) == self.lanes else { throw .malformedPyramid(field: "lanes") }
    for word in 6..<Self.pageWords where header[word] != 0 { throw .malformedPyramid(field: "zeros") }
  }

  /// Returns the header's frame count, or nil if the file isn't finished or the count is corrupt.
  static func totalFrames(header: Span<UInt64>) -> Int64? {
    guard UInt64(littleEndian: header[5]) == XXH64.hash(header.extracting(..<5)) else { return nil }
    let frames = Int64(bitPattern: UInt64(littleEndian: header[4]))
    return (0...frameLimit).contains(frames) ? frames : nil
  }
}
