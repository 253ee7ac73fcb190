// One MPEG stream: what one run of an encoder wrote, frame after frame. Most encoders put a frame of silence first that
// tells about the others (the "Xing" frame; nobody has written a standard of it):
//
//   after the side information   "Xing" (varying bit rate) or "Info" (constant); flags 4: 1 frames, 2 bytes, 4 table,
//                                8 quality; then what the flags name: 4, 4, 100 and 4 bytes
//   then, by LAME and its kin    9 bytes of the encoder's name, 12 of other things, and 3: samples of the encoder's
//                                delay (12 bits) and of what it added at the end (12 bits)
//
// or "VBRI", 36 bytes into the frame, with the number of frames 14 bytes further on.
//
// A decoder is 529 samples late itself, so the sound begins delay + 529 samples into what is decoded and ends
// addition − 529 before the end. ffmpeg and the browsers that decode with it believe these numbers under the names
// "LAME", "Lavf" and "Lavc" alone. Without them they play all that is decoded, the 529 too, and so does this: positions
// are those that people hear. A counting frame that tells neither frames nor bytes is sound to them: a frame of
// silence.
//
// libsndfile's decoder leaves out the 529 where there is a counting frame; where they are wanted, silence stands for
// them. That is what an encoder has there, and what a decoder makes of a first frame that was cut out of a stream.
//
// To decode from frame n, the decoder is given the frames from one before n on, and in front of them a frame of silence
// that counts them. So that the samples are those of decoding from the start, to the last bit:
//
//   A frame takes bits out of the ones before it (the reservoir) and overlaps with the last. The first frames given are
//   there for their bits only: their side information says silence, and that they use all bits there are, for the
//   decoder keeps no others. (It makes silence itself of a frame whose bits are missing, but in versions 2 and 2.5
//   leaves a byte of the side information as it is, and then drops the frame.)
//   The number of the first frame given is a multiple of 8: the decoder's synthesis goes round a ring of 16 places, 36
//   or 18 steps a frame, and adds up in another order at another place, which shows in the last bit.
//
// Layers I and II have neither that frame nor a reservoir, and a decoder gives all of their samples. There libsndfile
// takes the file's bytes over the first frame's for the number of frames: where others are shorter, or joined to it, it
// stops too early. It is given the same frames again after the last, as often as makes it expect enough.

/// Where the frames of one MPEG stream are.
struct MPEGStream: Sendable {
  /// Decoding begins at a multiple of this many frames.
  static let entryFrames: Int64 = 32
  /// Frames given before the first that is used, and how many of them are whole.
  private static let (leadFrames, wholeFrames): (Int64, Int64) = (16, 4)

  private static let decoderDelay: Int64 = 529
  /// More pieces of frames are no sound, but an attack on the memory.
  private static let pieceLimit: Int64 = 1 << 18

  /// The first frame's.
  let header: MPEGFrameHeader
  /// Frames of sound.
  private(set) var frames: Int64 = 0
  /// What the counting frame says about their number; nil where there is none, or none that says it.
  private(set) var claimedFrames: Int64?
  /// Whether a frame is of another bit rate than the first, so that nothing but a count can tell the length.
  private(set) var isVarying = false
  /// Bytes of sound in the file, in order, without what is none between them.
  private(set) var ranges: [Range<Int64>] = []
  /// Where every `entryFrames`th frame begins in the file.
  private var entries: [Int64] = []
  /// The encoder's.
  private var (delay, addition): (Int64, Int64) = (0, 0)
  private var tellsDelay = false

  init(header: MPEGFrameHeader) { self.header = header }

  /// Reads a counting frame, whose mark is at `place`.
  mutating func readCount(
    _ header: MPEGFrameHeader, _ file: inout ByteWindow, at offset: Int64, mark place: Int64
  ) throws(AudioIOError) {
    if try file.word(at: place) == Mark.vbri {
      claimedFrames = try file.word(at: place + 14).map(Int64.init)
      return
    }
    guard let flags = try file.word(at: place + 4) else { return }
    if flags & 1 != 0 { claimedFrames = try file.word(at: place + 8).map(Int64.init) }
    let names: [(UInt32, Int64)] = [(1, 4), (2, 4), (4, 100), (8, 4)]
    let encoder = place + 8 + names.reduce(0) { $0 + (flags & $1.0 != 0 ? $1.1 : 0) }
    guard encoder + 24 <= offset + Int64(header.length), let name = try file.word(at: encoder),
      Mark.encoders.contains(name),
      let numbers = try file.word(at: encoder + 20)
    else { return }
    (tellsDelay, delay, addition) = (true, Int64(numbers >> 12 & 0xFFF), Int64(numbers & 0xFFF))
  }

  /// Where the frame at `offset` tells about the others; nil where it is one of them.
  @inline(__always)
  static func countMark(
    _ header: MPEGFrameHeader, _ file: inout ByteWindow, at offset: Int64
  ) throws(AudioIOError) -> Int64? {
    guard header.isLayerIII else { return nil }
    let place = offset + header.sideInformation.upperBound
    let word = try file.word(at: place)
    if word == Mark.xing || word == Mark.info { return try tellsLength(&file, at: place) ? place : nil }
    return try file.word(at: offset + 36) == Mark.vbri ? offset + 36 : nil
  }

  /// Whether the counting frame whose mark is at `place` has a number of frames or bytes.
  private static func tellsLength(_ file: inout ByteWindow, at place: Int64) throws(AudioIOError) -> Bool {
    guard let flags = try file.word(at: place + 4) else { return false }
    // The first of them is in front whichever it is.
    if flags & 3 == 3, let bytes = try file.word(at: place + 12), bytes > 0 { return true }
    guard flags & 3 != 0, let number = try file.word(at: place + 8) else { return false }
    return number > 0
  }

  @inline(__always)
  mutating func append(_ next: MPEGFrameHeader, at offset: Int64) {
    if frames % Self.entryFrames == 0 { entries.append(offset) }
    let end = offset + Int64(next.length)
    if let last = ranges.indices.last, ranges[last].upperBound == offset {
      ranges[last] = ranges[last].lowerBound..<end
    } else {
      ranges.append(offset..<end)
    }
    if next.bitRateIndex != header.bitRateIndex { isVarying = true }
    frames += 1
  }

  /// Samples per channel between the first and the last that the encoder was given.
  var samples: Int64 {
    // An end that is not there has nothing added to it.
    let isWhole = claimedFrames.map { $0 == frames || $0 == frames + 1 } ?? false
    let end = tellsDelay && isWhole ? max(addition - Self.decoderDelay, 0) : 0
    return max(frames * Int64(header.samples) - start - end, 0)
  }

  /// Samples decoded before the first of them.
  private var start: Int64 { tellsDelay ? Self.decoderDelay + delay : 0 }

  /// What the decoder is given to decode from `sample` on, and the samples of it to be thrown away; less than 0 where
  /// silence comes first. Reads some frames.
  func entry(before sample: Int64, path: String) throws(AudioIOError) -> (pieces: [FilePiece], skip: Int64) {
    let wanted = start + sample
    let target = min(wanted / Int64(header.samples), frames)
    var number = Int(max(target - Self.leadFrames, 0) / Self.entryFrames)
    guard header.isLayerIII else {
      let first = Int64(min(number, max(entries.count - 1, 0))) * Self.entryFrames
      return (repeated(from: first), wanted - first * Int64(header.samples))
    }
    var given: [FilePiece] = []
    while number > 0, number < entries.count {
      given = try silenced(from: number, before: target - Self.wholeFrames, path: path)
      if !given.isEmpty { break }
      number -= 1
    }
    let first = Int64(number) * Self.entryFrames
    return (
      [.bytes(header.countingFrame(frames - first))] + (given.isEmpty ? pieces(from: 0) : given),
      wanted - Self.decoderDelay - first * Int64(header.samples)
    )
  }

  /// The frames from an entry on, those that fill the reservoir silent; none where it isn't full before frame `limit`.
  private func silenced(from number: Int, before limit: Int64, path: String) throws(AudioIOError) -> [FilePiece] {
    var file = try ByteWindow(path: path)
    var (offset, filled, given): (Int64, Int64, [FilePiece]) = (entries[number], 0, [])
    var frame = Int64(number) * Self.entryFrames
    while filled < header.reservoir {
      guard frame < limit, let next = try file.word(at: offset).flatMap(MPEGFrameHeader.init) else { return [] }
      let (side, end) = (next.sideInformation, offset + Int64(next.length))
      // A frame may be too short for anything but itself.
      guard side.upperBound < next.length else { return [] }
      given.append(.range(offset..<offset + side.lowerBound))
      given.append(.bytes(next.silentSideInformation(using: filled)))
      given.append(.range(offset + side.upperBound..<end))
      filled += end - offset - side.upperBound
      offset =
        ranges.contains { $0.upperBound == end } ? ranges.first { $0.lowerBound > offset }?.lowerBound ?? end : end
      frame += 1
    }
    return given + pieces(from: offset)
  }

  /// The frames from an entry on, and again, where these alone are too few bytes for their number.
  private func repeated(from first: Int64) -> [FilePiece] {
    let given = pieces(from: entries[Int(first / Self.entryFrames)])
    let all = pieces(from: 0)
    let (had, more) = (given.map(\.count).reduce(0, +), max(all.map(\.count).reduce(0, +), 1))
    let times = max((frames - first) * Int64(header.lengthLimit) - had + more - 1, 0) / more
    guard Int64(all.count) * times <= Self.pieceLimit else { return given }
    return given + repeatElement(all, count: Int(times)).joined()
  }

  private func pieces(from offset: Int64) -> [FilePiece] {
    ranges.filter { $0.upperBound > offset }.map { .range(max($0.lowerBound, offset)..<$0.upperBound) }
  }
}

// MARK: Kept in a file

extension MPEGStream {
  func write(to words: inout MapWords) {
    let flags: Int64 = (isVarying ? 1 : 0) | (tellsDelay ? 2 : 0)
    words.append([Int64(header.word), frames, claimedFrames ?? -1, flags, delay, addition])
    words.append(ranges)
    words.append(Int64(entries.count))
    words.append(entries)
  }

  /// nil where that is no stream.
  init?(_ words: inout MapWords) {
    guard let word = words.next(in: 0...Int64(UInt32.max)), let header = MPEGFrameHeader(UInt32(word)),
      let frames = words.next(in: 1...MapWords.frameLimit / 1152),
      let claimed = words.next(in: -1...Int64(UInt32.max)), let flags = words.next(in: 0...3),
      let delay = words.next(in: 0...0xFFF), let addition = words.next(in: 0...0xFFF), let ranges = words.ranges(),
      !ranges.isEmpty, let entries = words.offsets(),
      Int64(entries.count) == (frames + Self.entryFrames - 1) / Self.entryFrames
    else { return nil }
    self.header = header
    self.frames = frames
    claimedFrames = claimed < 0 ? nil : claimed
    (isVarying, tellsDelay) = (flags & 1 != 0, flags & 2 != 0)
    (self.delay, self.addition) = (delay, addition)
    (self.ranges, self.entries) = (ranges, entries)
  }
}

/// Four letters as one number.
private enum Mark {
  static let xing: UInt32 = 0x5869_6E67
  static let info: UInt32 = 0x496E_666F
  static let vbri: UInt32 = 0x5642_5249
  /// "LAME", "Lavf", "Lavc"
  static let encoders: [UInt32] = [0x4C41_4D45, 0x4C61_7666, 0x4C61_7663]
}
