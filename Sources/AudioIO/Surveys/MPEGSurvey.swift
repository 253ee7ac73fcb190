import Terms

// MPEG audio consists only of frames, and nothing gives their number except a frame that most encoders write first (see
// MPEGStream). libsndfile uses that number, or else estimates one from the first frames' bit rate, and stops there. It
// may decode less than half of a file with a variable bit rate without an error, and only the first of several joined
// files.
//
// So the frames are counted here by stepping from one to the next. Anything else between them (tags, pictures, damage)
// is skipped byte by byte. Any two bytes may look like a frame, so one there counts only if a similar one follows. A
// new stream begins with a counting frame or with frames of another kind.
//
// Players look for the first counting frame only where the tags end. If other bytes precede it, it is a frame of
// silence to them, and the encoder's delay is played, so that is how it counts here.

/// The streams found in the bytes of an MP3 file.
struct MPEGSurvey: Sendable {
  /// With more than this, the file isn't plausible; it would be an attempt to exhaust memory.
  private static let (streamLimit, rangeLimit) = (4096, 1 << 16)

  private(set) var streams: [MPEGStream] = []
  /// Bytes between the first and last frame that belong neither to a frame nor to a tag.
  private(set) var foreignBytes: Int64 = 0
  /// Whether the file ends in the middle of a frame.
  private(set) var isCut = false
  /// Whether the file consists mostly of frames; a tag may also precede FLAC.
  private(set) var isMostlyFrames = false
  /// Whether there is almost nothing between the frames. If there is, and something precedes them, the file may be part
  /// of another format, such as a disc or a broadcast, in which sound is interleaved with other data.
  private(set) var isNearlyAllFrames = false
  /// Bytes before the first frame that don't belong to a tag.
  private(set) var leadingBytes: Int64 = 0
  /// Bytes after the last frame, if they are most of the file.
  private(set) var trailingBytes: Int64 = 0
  /// Up to this number of leading bytes is accepted, whatever they are.
  private static let leadingLimit: Int64 = 65_536
  /// With this number of frames at its beginning, a file is sound, however much else follows.
  private static let certainFrames: Int64 = 64
  private var rangeCount = 0

  /// Reads the whole file at `path`, at the speed of the disk.
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
      let mark = streams.isEmpty && passed > 0 ? nil : try MPEGStream.countMark(header, &file, at: offset)
      if mark == nil, streams.allSatisfy({ $0.frames == 0 }), offset - begin < Self.leadingLimit,
        let next = try file.word(at: offset + Int64(header.length)), !header.beginsSound(before: next)
      {
        (offset, last) = (offset + Int64(header.length), header)
        continue
      }
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
    isNearlyAllFrames = 19 * foreignBytes <= covered
    // Drops pairs of frames found in a picture and the remains of a cut stream.
    let isOnly = streams.count == 1
    streams.removeAll { $0.frames < 4 && !isOnly }
    isMostlyFrames = covered > (file.size - begin - leading) / 2
    if !isMostlyFrames, let first = streams.first, first.frames >= Self.certainFrames {
      let ranges = streams.flatMap(\.ranges)
      let (sound, end) = (ranges.map { Int64($0.count) }.reduce(0, +), ranges.last?.upperBound ?? begin)
      isMostlyFrames = 19 * (end - begin - leading - sound) <= sound
      if isMostlyFrames { (trailingBytes, foreignBytes, isCut) = (file.size - end, 0, false) }
    }
  }

  /// Returns the offset of the first frame in a file that was cut out of a stream or begins with other bytes: the first
  /// header whose frame is followed by a similar header. Returns nil if there is none in the first 64 KiB.
  static func firstFrame(path: String) throws(AudioIOError) -> Int64? {
    var file = try ByteWindow(path: path)
    // The mark of a tar archive.
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

  /// Returns the end of the ID3v2 tag at `offset`, or nil if there is none. Its length is in four groups of seven bits.
  static func endOfTag(_ file: inout ByteWindow, at offset: Int64) throws(AudioIOError) -> Int64? {
    guard try file.word(at: offset).map({ $0 >> 8 }) == 0x49_4433, let tag = try file.bytes(at: offset, count: 10)
    else { return nil }
    let size = tag.suffix(4).reduce(Int64(0)) { $0 << 7 | Int64($1 & 0x7F) }
    let end = offset + 10 + size
    // A tag that claims to extend past the file's end, or isn't followed by a frame, must not hide any frames.
    if offset == 0 { return end }
    guard let next = try file.word(at: end), MPEGFrameHeader(next) != nil else { return nil }
    return end
  }
}

extension MPEGFrameHeader {
  /// Whether the previous frame, or else the next one, is of the same kind. At the end of the file, matching the stream
  /// is enough.
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
