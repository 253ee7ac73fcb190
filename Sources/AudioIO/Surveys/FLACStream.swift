import Terms

// One FLAC stream (RFC 9639 sections 6 and 8): "fLaC"; blocks of metadata, each with a 4-byte header (last block 1 bit,
// type 7, length 24), the first of which is STREAMINFO (type 0, 34 bytes); then the frames.
//
//   STREAMINFO   smallest and largest block 2 + 2, smallest and largest frame 3 + 3, sample rate 20 bits, channels − 1
//                3, depth − 1 5, samples per channel 36 (0: unknown), MD5 of them 16
//
// libsndfile stops at that number of samples, so a header with a wrong number is corrected before libsndfile sees it.

/// The metadata before the frames of a stream.
struct FLACHead: Sendable, Equatable {
  /// From "fLaC" to the first frame.
  let range: Range<Int64>
  /// In hertz.
  let sampleRate: Int
  let channels: Int
  /// Bits per sample.
  let depth: Int
  /// The number of samples per channel according to the header; nil if unknown.
  let claimedFrames: Int64?

  /// The offset of the byte whose low four bits are the highest of the number of samples.
  private static let countOffset: Int64 = 21
  /// A file with more blocks isn't plausible; it would be an attempt to waste time.
  private static let blockLimit = 4096

  init(range: Range<Int64>, sampleRate: Int, channels: Int, depth: Int, claimedFrames: Int64?) {
    (self.range, self.sampleRate, self.channels, self.depth) = (range, sampleRate, channels, depth)
    self.claimedFrames = claimedFrames
  }

  /// Reads the head at `offset`. Fails if there is none or its end is missing.
  init?(_ file: inout ByteWindow, at offset: Int64) throws(AudioIOError) {
    guard try file.word(at: offset) == Self.mark, let first = try file.word(at: offset + 4),
      first & 0x7FFF_FFFF == 34, let shape = try file.word(at: offset + 18), let low = try file.word(at: offset + 22)
    else { return nil }
    var (block, next) = (first, offset + 8 + 34)
    for _ in 0..<Self.blockLimit where block >> 31 == 0 {
      guard let word = try file.word(at: next), word >> 24 & 0x7F != 0x7F else { return nil }
      (block, next) = (word, next + 4 + Int64(word & 0xFF_FFFF))
    }
    guard block >> 31 == 1, next <= file.size else { return nil }
    // A rate of 0 means that the data isn't audio.
    guard shape >> 12 > 0 else { return nil }
    range = offset..<next
    (sampleRate, channels, depth) = (Int(shape >> 12), Int(shape >> 9 & 7) + 1, Int(shape >> 4 & 31) + 1)
    let count = Int64(shape & 15) << 32 | Int64(low)
    claimedFrames = count == 0 ? nil : count
  }

  /// "fLaC".
  static let mark: UInt32 = 0x664C_6143

  /// The head with another number of samples per channel.
  fileprivate func pieces(claiming frames: Int64) -> [FilePiece] {
    if frames == claimedFrames { return [.range(range)] }
    let place = range.lowerBound + Self.countOffset
    let depthBits = UInt8((depth - 1) & 15) << 4
    // A number over 36 bits doesn't fit, so it is marked as unknown.
    let count = frames < 1 << 36 ? frames : 0
    let bytes = [depthBits | UInt8(count >> 32)] + (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * $0)) }
    return [.range(range.lowerBound..<place), .bytes(bytes), .range(place + 5..<range.upperBound)]
  }
}

/// Consecutive frames and the head that precedes them.
struct FLACStream: Sendable {
  let head: FLACHead
  /// Whether `head` is the previous stream's: the frames were appended to others without a head of their own.
  let isHeadless: Bool
  /// The bytes of the frames and of anything that follows the last one.
  private(set) var body: Range<Int64>
  /// The number of the first sample, in the frames' own numbering.
  private(set) var firstSample: Int64 = 0
  /// Samples per channel from the first frame through the last.
  private(set) var samples: Int64 = 0
  /// Number of these samples that are in no frame.
  private(set) var missing: Int64 = 0

  private(set) var last: (header: FLACFrameHeader, offset: Int64)?
  /// Bytes of the second-to-last frame; 0 if unknown.
  private(set) var lastLength: Int64 = 0
  /// The block size of all frames but the last; 0 if it varies.
  private(set) var blockSize: Int64 = 0

  /// Creates a stream without frames; its frames will begin at `offset`.
  init(_ head: FLACHead, at offset: Int64? = nil) {
    self.head = head
    isHeadless = offset != nil
    let begin = offset ?? head.range.upperBound
    body = begin..<begin
  }

  /// Whether the frame with this header directly follows the last one.
  func goesOn(with header: FLACFrameHeader, at offset: Int64) -> Bool {
    guard let last else { return offset == body.lowerBound }
    return header.follows(last.header)
  }

  /// Whether the frame with this header can follow the last one, with frames missing in between.
  func leads(to header: FLACFrameHeader) -> Bool {
    last.map { header.isVariable == $0.header.isVariable && header.number > $0.header.number } ?? true
  }

  mutating func append(_ header: FLACFrameHeader, at offset: Int64) {
    if last == nil {
      blockSize = header.isVariable ? 0 : header.blockSize
      body = offset..<offset
      firstSample = start(of: header)
    }
    lastLength = last.map { header.follows($0.header) ? offset - $0.offset : 0 } ?? 0
    missing += start(of: header) - firstSample - samples
    samples = start(of: header) + header.blockSize - firstSample
    last = (header, offset)
  }

  private func start(of header: FLACFrameHeader) -> Int64 { header.number * max(blockSize, 1) }

  /// Ends the stream: there are no frames from `offset` on.
  mutating func end(at offset: Int64) { body = body.lowerBound..<offset }

  /// Drops the last frame, which can't be decoded.
  mutating func dropLast() {
    guard let last else { return }
    samples -= last.header.blockSize
    end(at: last.offset)
  }

  /// The pieces for libsndfile to read.
  var pieces: [FilePiece] { head.pieces(claiming: firstSample + samples) + [.range(body)] }

  /// The last frame alone.
  var lastFramePieces: [FilePiece] {
    guard let last else { return [] }
    return head.pieces(claiming: last.header.blockSize) + [.range(last.offset..<body.upperBound)]
  }
}

extension FLACFrameHeader {
  func follows(_ other: Self) -> Bool {
    isVariable == other.isVariable && number == other.number + (isVariable ? other.blockSize : 1)
  }
}

// MARK: Kept in a file

extension FLACStream {
  func write(to words: inout MapWords) {
    words.append([head.range, body])
    words.append([Int64(head.sampleRate), Int64(head.channels), Int64(head.depth), head.claimedFrames ?? 0])
    words.append([firstSample, samples, missing, isHeadless ? 1 : 0, blockSize])
  }

  /// Fails if the words don't describe a stream.
  init?(_ words: inout MapWords) {
    guard let ranges = words.ranges(), ranges.count == 2, let sampleRate = words.next(in: 1...0xF_FFFF),
      let channels = words.next(in: 1...8), let depth = words.next(in: 1...32),
      let claimed = words.next(in: 0...0xF_FFFF_FFFF), let first = words.next(in: 0...Int64(1) << 53),
      let samples = words.next(in: 1...MapWords.frameLimit), let missing = words.next(in: 0...samples),
      let headless = words.next(in: 0...1), let block = words.next(in: 0...65_536), ranges[0].count >= 42
    else { return nil }
    head = FLACHead(
      range: ranges[0], sampleRate: Int(sampleRate), channels: Int(channels), depth: Int(depth),
      claimedFrames: claimed == 0 ? nil : claimed)
    (isHeadless, body, firstSample, self.samples) = (headless == 1, ranges[1], first, samples)
    (self.missing, blockSize) = (missing, block)
  }
}
