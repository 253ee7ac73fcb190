import Terms

// A FLAC file's header gives its number of samples, and libsndfile believes it. If the header says fewer than there
// are, or another file was appended to the first, the rest is silently dropped. If it says more, or nothing, the length
// is wrong or unknown until everything has been decoded.
//
// So the frames are counted here. A frame doesn't give its length; the next one is found by its first two bytes, its
// checksum, and its number, which must be one more than the last. In the remains of a damaged file the numbers jump: a
// frame then counts only if another one follows it. (libFLAC fills the gap with silence.) If the numbers start over,
// another stream begins, usually with its own head.
//
// A frame is usually about as long as the one before, so the search looks there first. If that frame's number is the
// next one, nothing can lie between, so most of a large file isn't read at all.

/// The streams found in the bytes of a FLAC file.
struct FLACSurvey: Sendable {
  /// A file with more streams isn't plausible; it would be an attempt to waste the time it takes to open them.
  private static let streamLimit = 1024
  /// Slightly more than a frame of the largest block with eight channels of 32 bits.
  private static let frameLimit: Int64 = 3 << 20

  /// Maximum number of positions tried for the end of a last frame that is followed by other data.
  private static let endLimit = 32

  /// The streams that contain frames.
  private(set) var streams: [FLACStream] = []
  /// Number of streams beyond the limit or with impossible claims.
  private(set) var streamsLeftOut = 0
  /// Whether the file ends in the middle of a frame.
  private(set) var isCut = false

  /// Scans the file at `path`, whose first head is at `begin`; without one, there are no streams. `glances`: whether to
  /// look for frames at their likely positions first; the result is the same.
  init(path: String, at begin: Int64, glances: Bool = true) throws(AudioIOError) {
    var file = try ByteWindow(path: path)
    var glance = try FLACGlance(path: path, isUsed: glances)
    guard let head = try FLACHead(&file, at: begin) else { return }
    var current = FLACStream(head)
    // A frame that doesn't follow the last one, kept until another one follows it.
    var leap: (header: FLACFrameHeader, offset: Int64)?
    var (offset, searched) = (head.range.upperBound, head.range.upperBound)
    while true {
      if leap == nil, let (header, place) = try glance.frame(after: current) {
        current.append(header, at: place)
        (offset, searched) = (place + Int64(header.length), place)
        continue
      }
      guard let place = try file.firstSync(from: offset) else { break }
      offset = place + 1
      guard let header = try file.flacFrameHeader(at: place) else { continue }
      if current.goesOn(with: header, at: place) {
        current.append(header, at: place)
      } else if let next = try Self.head(in: max(searched, current.last?.offset ?? searched)..<place, of: &file) {
        try close(current, at: next.range.lowerBound, in: &file, path: path)
        current = FLACStream(next)
        (offset, searched, leap) = (next.range.upperBound, next.range.upperBound, nil)
        continue
      } else if let first = leap, header.follows(first.header) {
        if !current.leads(to: first.header) {
          try close(current, at: first.offset, in: &file, path: path)
          current = FLACStream(current.head, at: first.offset)
        }
        current.append(first.header, at: first.offset)
        current.append(header, at: place)
      } else {
        (leap, searched) = ((header, place), place)
        continue
      }
      (offset, searched, leap) = (place + Int64(header.length), place, nil)
    }
    isCut = try close(current, at: file.size, in: &file, path: path)
  }

  /// Returns the offset of the first head in a file that begins with an ID3v2 tag, or nil if none follows the tag.
  static func begin(path: String) throws(AudioIOError) -> Int64? {
    var file = try ByteWindow(path: path)
    guard let end = try MPEGSurvey.endOfTag(&file, at: 0), try file.word(at: end) == FLACHead.mark else { return nil }
    return end
  }

  /// Returns the first head that begins in the range.
  private static func head(in range: Range<Int64>, of file: inout ByteWindow) throws(AudioIOError) -> FLACHead? {
    for offset in range where try file.word(at: offset) == FLACHead.mark {
      if let head = try FLACHead(&file, at: offset) { return head }
    }
    return nil
  }

  /// Finishes a stream whose bytes end at `end`. Returns whether it ends in the middle of a frame.
  @discardableResult
  private mutating func close(
    _ stream: FLACStream, at end: Int64, in file: inout ByteWindow, path: String
  ) throws(AudioIOError) -> Bool {
    guard let last = stream.last else { return false }
    // The length may be false; a thousand of them must not overflow.
    guard streams.count < Self.streamLimit, stream.samples < 1 << 48 else {
      streamsLeftOut += 1
      return false
    }
    var stream = stream
    stream.end(at: end)
    let ends = try Self.frameEnds(in: last.offset..<end, of: &file)
    var isWhole = ends == [end]
    if !isWhole, Self.decodesLast(stream, path: path) {
      isWhole = true
      // libFLAC can't seek to the last frames if much other data follows them.
      let found = ends.first { place in
        var shorter = stream
        shorter.end(at: place)
        return Self.decodesLast(shorter, path: path)
      }
      if let found { stream.end(at: found) }
    }
    if !isWhole { stream.dropLast() }
    if stream.samples > 0 { streams.append(stream) }
    return !isWhole
  }

  /// Offsets at which the frame at the start of these bytes may end, judged by its checksum. The last is the end of the
  /// range, if the checksum is right there. By chance, one offset in 65,536 looks right.
  private static func frameEnds(
    in range: Range<Int64>, of file: inout ByteWindow
  ) throws(AudioIOError) -> [Int64] {
    var ends: [Int64] = []
    var (sum, offset): (UInt16, Int64) = (0, range.lowerBound)
    let limit = min(range.upperBound, range.lowerBound + frameLimit)
    while offset < limit {
      let count = Int(min(limit - offset, 1 << 14))
      guard let bytes = try file.bytes(at: offset, count: count) else { break }
      for byte in bytes {
        sum = FLACFrameHeader.crc16(sum, byte)
        offset += 1
        if sum == 0, ends.count < endLimit || offset == range.upperBound { ends.append(offset) }
      }
    }
    return ends
  }

  /// Whether the last frame can be decoded. A tag or anything else may follow it, and only decoding shows where it
  /// ends.
  private static func decodesLast(_ stream: FLACStream, path: String) -> Bool {
    guard let frames = stream.last.map({ Int($0.header.blockSize) }),
      let file = try? SndfileHandle(reading: path, stream.lastFramePieces), file.info.channels > 0
    else { return false }
    let samples = PageBuffer<Int16>(count: frames * Int(file.info.channels))
    return file.read(into: samples, frames: frames) == frames
  }
}

extension ByteWindow {
  /// Returns the header of the frame at `offset`, or nil if there is none.
  fileprivate mutating func flacFrameHeader(at offset: Int64) throws(AudioIOError) -> FLACFrameHeader? {
    try bytes(at: offset, count: Int(min(size - offset, Int64(FLACFrameHeader.lengthLimit)))).flatMap(
      FLACFrameHeader.init)
  }
}

/// Looks for the next frame where it would be if it were about as long as the last.
private struct FLACGlance: ~Copyable {
  /// Minimum frame length for a glance: one read covers several shorter frames anyway.
  private static let leastLength: Int64 = 4096
  /// Number of frames without a glance after a miss, because the lengths vary there.
  private static let pause = 16

  private var file: ByteWindow
  private let isUsed: Bool
  private var waiting = 0

  init(path: String, isUsed: Bool) throws(AudioIOError) {
    file = try ByteWindow(path: path, length: 4096)
    self.isUsed = isUsed
  }

  /// Returns the frame after the last one and its offset, or nil if it isn't where it was expected.
  mutating func frame(after stream: FLACStream) throws(AudioIOError) -> (FLACFrameHeader, Int64)? {
    guard isUsed, stream.lastLength >= Self.leastLength, let last = stream.last else { return nil }
    guard waiting == 0 else {
      waiting -= 1
      return nil
    }
    var offset = last.offset + stream.lastLength * 3 / 4
    let limit = last.offset + stream.lastLength * 5 / 4
    while let place = try file.firstSync(from: offset, upTo: limit) {
      if let header = try file.flacFrameHeader(at: place), header.follows(last.header) { return (header, place) }
      offset = place + 1
    }
    waiting = Self.pause
    return nil
  }
}
