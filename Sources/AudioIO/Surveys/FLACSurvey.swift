// How many samples a FLAC file holds stands in its header, and libsndfile believes it: where the header says fewer than
// there are, or another file was joined to the first, the rest is left out without a word; where it says more, or
// nothing, the length is wrong or unknown until all was decoded.
//
// So the frames are counted here. No frame tells its length: the next one is looked for by its two first bytes, its
// checksum, and its number, which has to be the one after the last. In what is left of a damaged file the numbers leap:
// a frame counts there only if another follows it. (libFLAC fills the gap with silence.) If the numbers start over,
// another stream begins, usually with a header of its own.
//
// A frame is mostly about as long as the one before: it is looked for there first, and if it is the next by its number
// nothing lies between, so most of a large file isn't read at all.

/// What the bytes of a FLAC file hold.
struct FLACSurvey: Sendable {
  /// More are no sound, but an attack on the time that opening them takes.
  private static let streamLimit = 1024
  /// A frame of the largest block of eight channels of 32 bits, and a little.
  private static let frameLimit: Int64 = 3 << 20

  /// Places looked at for the end of a last frame that something follows.
  private static let endLimit = 32

  /// Those with frames in them.
  private(set) var streams: [FLACStream] = []
  /// Streams beyond the limit, or that claim the impossible.
  private(set) var streamsLeftOut = 0
  /// Whether the file ends within a frame.
  private(set) var isCut = false

  /// Looks through the file at `path`; its first head is at `begin`, or else there are no streams. `glances`: whether
  /// frames are looked for where they are likely first; the findings are the same.
  init(path: String, at begin: Int64, glances: Bool = true) throws(AudioIOError) {
    var file = try ByteWindow(path: path)
    var glance = try FLACGlance(path: path, isUsed: glances)
    guard let head = try FLACHead(&file, at: begin) else { return }
    var current = FLACStream(head)
    // A frame that doesn't follow the last, until one follows it.
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

  /// Where the first head is in a file that begins with an ID3v2 tag; nil where there is none after it.
  static func begin(path: String) throws(AudioIOError) -> Int64? {
    var file = try ByteWindow(path: path)
    guard let end = try MPEGSurvey.endOfTag(&file, at: 0), try file.word(at: end) == FLACHead.mark else { return nil }
    return end
  }

  /// The first head that begins in that range.
  private static func head(in range: Range<Int64>, of file: inout ByteWindow) throws(AudioIOError) -> FLACHead? {
    for offset in range where try file.word(at: offset) == FLACHead.mark {
      if let head = try FLACHead(&file, at: offset) { return head }
    }
    return nil
  }

  /// Takes up a stream whose bytes end at `end`; tells whether it ends within a frame.
  @discardableResult
  private mutating func close(
    _ stream: FLACStream, at end: Int64, in file: inout ByteWindow, path: String
  ) throws(AudioIOError) -> Bool {
    guard let last = stream.last else { return false }
    // A length that is a lie; a thousand of them must not overflow.
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
      // libFLAC can't seek to the last frames where much follows them.
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

  /// Whether the last frame can be decoded: a tag or anything else may follow it, and only decoding tells where it
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
  /// The frame's header that begins there; nil where none does.
  fileprivate mutating func flacFrameHeader(at offset: Int64) throws(AudioIOError) -> FLACFrameHeader? {
    try bytes(at: offset, count: Int(min(size - offset, Int64(FLACFrameHeader.lengthLimit)))).flatMap(
      FLACFrameHeader.init)
  }
}

/// Looks for the next frame where it is if it is about as long as the last.
private struct FLACGlance: ~Copyable {
  /// Of shorter frames a read takes in several.
  private static let leastLength: Int64 = 4096
  /// Frames that are not looked for after one that wasn't there: here lengths vary.
  private static let pause = 16

  private var file: ByteWindow
  private let isUsed: Bool
  private var waiting = 0

  init(path: String, isUsed: Bool) throws(AudioIOError) {
    file = try ByteWindow(path: path, length: 4096)
    self.isUsed = isUsed
  }

  /// The frame after the last, and its place; nil where it isn't where it was looked for.
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
