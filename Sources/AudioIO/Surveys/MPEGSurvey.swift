// MPEG audio is frames and nothing else; how many there are stands nowhere, but in a frame that most encoders put first
// (see MPEGStream). libsndfile reckons with that count, or else with the first frames' bit rate, and stops there: of a
// file of varying rate it may decode less than half without a word, of joined files the first only.
//
// So the frames are counted here, by stepping from one to the next. What is no frame between them (tags, pictures,
// damage) is stepped over byte by byte; since any two bytes may look like a frame, one counts there only where another
// like it follows. A new stream begins with a frame that counts the others, or with frames of another kind.

/// What the bytes of an MP3 file hold.
struct MPEGSurvey: Sendable {
  /// More are no sound, but an attack on the memory.
  private static let (streamLimit, rangeLimit) = (4096, 1 << 16)

  private(set) var streams: [MPEGStream] = []
  /// Bytes between the first frame and the last that are none, nor a tag.
  private(set) var foreignBytes: Int64 = 0
  /// Whether the file ends within a frame.
  private(set) var isCut = false
  /// Whether the file is frames for the most part: a tag may stand before FLAC, too.
  private(set) var isMostlyFrames = false
  /// Whether there is next to nothing between the frames. Else, and with something in front, it may be a piece of
  /// another kind of file, a disc's or a broadcast's, whose sound stands among other things.
  private(set) var isNearlyAllFrames = false
  /// Bytes before the first frame that are no tag.
  private(set) var leadingBytes: Int64 = 0
  /// So many of them may be anything.
  private static let leadingLimit: Int64 = 65_536
  private var rangeCount = 0

  /// Reads all of the file at `path`, at the speed of the disk.
  init(path: String) throws(AudioIOError) {
    var file = try ByteWindow(path: path)
    let begin = try Self.endOfTag(&file, at: 0) ?? 0
    var (offset, end) = (begin, begin)
    var (covered, passed): (Int64, Int64) = (0, 0)
    var last: MPEGFrameHeader?
    while let word = try file.word(at: offset) {
      guard let header = MPEGFrameHeader(word), try header.continues(last, in: &file, at: offset, after: identity)
      else {
        last = nil
        if let end = try Self.endOfTag(&file, at: offset) {
          offset = end
        } else {
          (offset, passed) = (offset + 1, passed + 1)
        }
        continue
      }
      guard offset + Int64(header.length) <= file.size else {
        isCut = true
        break
      }
      let mark = try MPEGStream.countMark(header, &file, at: offset)
      if mark != nil || identity != header.identity {
        guard streams.count < Self.streamLimit else { break }
        streams.append(MPEGStream(header: header))
      }
      let current = streams.count - 1
      if let mark {
        try streams[current].readCount(header, &file, at: offset, mark: mark)
      } else {
        streams[current].append(header, at: offset)
      }
      if covered == 0 { leadingBytes = passed }
      if offset > end {
        if covered > 0 { foreignBytes += passed }
        rangeCount += 1
        guard rangeCount < Self.rangeLimit else { break }
      }
      covered += Int64(header.length)
      offset += Int64(header.length)
      (end, last, passed) = (offset, header, 0)
    }
    let leading = leadingBytes <= Self.leadingLimit ? leadingBytes : 0
    isMostlyFrames = covered > (file.size - begin - leading) / 2
    isNearlyAllFrames = 19 * foreignBytes <= covered
    // Two frames in a picture, or what is left of a stream that was cut.
    let isOnly = streams.count == 1
    streams.removeAll { $0.frames < 4 && !isOnly }
  }

  /// Returns the offset of the first frame in a file that was cut out of a stream or begins with other bytes: the first
  /// header whose frame is followed by a similar header. nil if there is none in the first 64 KiB.
  static func firstFrame(path: String) throws(AudioIOError) -> Int64? {
    var file = try ByteWindow(path: path)
    // A tar archive has its mark here.
    if try file.word(at: 257) == 0x7573_7461 { return nil }
    var offset: Int64 = 0
    while offset < leadingLimit, let word = try file.word(at: offset) {
      if let header = MPEGFrameHeader(word), try header.continues(nil, in: &file, at: offset, after: nil) {
        return offset
      }
      offset += 1
    }
    return nil
  }

  private var identity: UInt32? { streams.last?.header.identity }

  /// ID3v2: its length in four groups of seven bits. nil where there is none at `offset`.
  static func endOfTag(_ file: inout ByteWindow, at offset: Int64) throws(AudioIOError) -> Int64? {
    guard try file.word(at: offset).map({ $0 >> 8 }) == 0x49_4433, let tag = try file.bytes(at: offset, count: 10)
    else { return nil }
    let size = tag.suffix(4).reduce(Int64(0)) { $0 << 7 | Int64($1 & 0x7F) }
    let end = offset + 10 + size
    // One that claims more than there is, or that no frame follows, must not hide any.
    if offset == 0 { return end }
    guard let next = try file.word(at: end), MPEGFrameHeader(next) != nil else { return nil }
    return end
  }
}

extension MPEGFrameHeader {
  /// Whether the frame before, or else the one after, is of the same kind; at the end of the file the stream's is
  /// enough.
  @inline(__always)
  fileprivate func continues(
    _ last: Self?, in file: inout ByteWindow, at offset: Int64, after stream: UInt32?
  ) throws(AudioIOError) -> Bool {
    if let last, identity == last.identity { return true }
    let end = offset + Int64(length)
    guard let next = try file.word(at: end) else { return end == file.size && stream == identity }
    return MPEGFrameHeader(next)?.identity == identity
  }
}
