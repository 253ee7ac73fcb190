import Terms

// One MPEG stream: the frames written by one run of an encoder. Most encoders first write a frame of silence that
// describes the others (the "Xing" frame, for which there is no standard):
//
//   after the side information   "Xing" (varying bit rate) or "Info" (constant); flags 4: 1 frames, 2 bytes, 4 table,
//                                8 quality; then what the flags name: 4, 4, 100 and 4 bytes
//   then, from LAME and others   9 bytes of the encoder's name, 12 of other things, and 3: samples of the encoder's
//                                delay (12 bits) and of padding at the end (12 bits)
//
// or "VBRI", 36 bytes into the frame, with the number of frames 14 bytes further on.
//
// A decoder itself adds a delay of 529 samples, so the sound begins delay + 529 samples into the decoded samples and
// ends padding − 529 samples before their end. ffmpeg, and the browsers that use it, trust these numbers only with the
// names "LAME", "Lavf", and "Lavc". Otherwise they play everything decoded, including the 529, and so does this code:
// positions match what people hear. A counting frame that gives neither frames nor bytes is sound to them, namely a
// frame of silence.
//
// If there is a counting frame, libsndfile's decoder omits the 529 samples; where they belong to the sound, silence
// replaces them. An encoder writes silence there, and a decoder returns silence for a first frame that was cut out of a
// stream.
//
// To decode from frame n, the decoder gets the frames starting some way before n, preceded by a frame of silence that
// counts them. For the samples to equal those of decoding from the start, to the last bit:
//
//   A frame uses bits of the preceding ones (the reservoir) and overlaps with the last. The first frames given provide
//   only bits: their side information says silence and that they use all available bits, because the decoder keeps no
//   others. (By itself, it returns silence for a frame whose bits are missing, but in versions 2 and 2.5 it leaves a
//   byte of the side information unchanged and then drops the frame.)
//   The number of the first frame given is a multiple of 8. The decoder's synthesis advances through a ring of 16
//   places in 36 or 18 steps per frame and sums in a different order at each place, which changes the last bit.
//
// Layers I and II have neither that frame nor a reservoir, and a decoder returns all of their samples. There,
// libsndfile estimates the number of frames as the file's bytes divided by the first frame's. If others are longer, or
// another stream was appended, it stops too early. So it gets the same frames again after the last, as many times as it
// takes to raise the estimate enough.

/// The positions of the frames of one MPEG stream.
struct MPEGStream: Sendable {
  /// Decoding starts at a multiple of this number of frames.
  static let entryFrames: Int64 = 32
  /// Number of frames given before the first one used, and how many of these are complete.
  private static let (leadFrames, wholeFrames): (Int64, Int64) = (16, 4)

  private static let decoderDelay: Int64 = 529
  /// With more pieces than this, the file isn't plausible; it would be an attempt to exhaust memory.
  private static let pieceLimit: Int64 = 1 << 18

  /// The header of the first frame.
  let header: MPEGFrameHeader
  /// Number of frames of sound.
  private(set) var frames: Int64 = 0
  /// The number of frames according to the counting frame; nil if it is missing or doesn't say.
  private(set) var claimedFrames: Int64?
  /// Whether frames have different bit rates, so that the length can only be known by counting.
  private(set) var isVarying = false
  private var bitRateIndex: UInt32 = 0
  /// The bytes of sound in the file, in order, without anything between frames.
  private(set) var ranges: [Range<Int64>] = []
  /// The offset of every `entryFrames`th frame.
  private var entries: [Int64] = []
  /// The encoder's delay and padding, in samples.
  private var (delay, addition): (Int64, Int64) = (0, 0)
  private var tellsDelay = false

  init(header: MPEGFrameHeader) { self.header = header }

  /// Parses a counting frame whose mark is at `place`.
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

  /// Returns the position of the mark if the frame at `offset` is a counting frame, or nil if it is sound.
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

  /// Whether the counting frame with its mark at `place` gives a number of frames or bytes.
  private static func tellsLength(_ file: inout ByteWindow, at place: Int64) throws(AudioIOError) -> Bool {
    guard let flags = try file.word(at: place + 4) else { return false }
    // Whichever of the two is present comes first.
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
    // That of a counting frame may be any.
    if frames == 0 { bitRateIndex = next.bitRateIndex }
    if next.bitRateIndex != bitRateIndex { isVarying = true }
    frames += 1
  }

  /// Samples per channel that the encoder was given, from the first to the last.
  var samples: Int64 {
    // If the end is missing, so is the padding.
    let isWhole = claimedFrames.map { $0 == frames || $0 == frames + 1 } ?? false
    let end = tellsDelay && isWhole ? max(addition - Self.decoderDelay, 0) : 0
    return max(frames * Int64(header.samples) - start - end, 0)
  }

  /// Number of decoded samples before the first one.
  private var start: Int64 { tellsDelay ? Self.decoderDelay + delay : 0 }

  /// Returns what the decoder must read to decode from `sample` on, and how many of its samples to discard; a negative
  /// number means that silence comes first. Reads some frames.
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

  /// Returns the frames from an entry on, with silence in those that fill the reservoir, or nothing if the reservoir
  /// isn't full before frame `limit`.
  private func silenced(from number: Int, before limit: Int64, path: String) throws(AudioIOError) -> [FilePiece] {
    var file = try ByteWindow(path: path)
    var (offset, filled, given): (Int64, Int64, [FilePiece]) = (entries[number], 0, [])
    var frame = Int64(number) * Self.entryFrames
    while filled < header.reservoir {
      guard frame < limit, let next = try file.word(at: offset).flatMap(MPEGFrameHeader.init) else { return [] }
      let (side, end) = (next.sideInformation, offset + Int64(next.length))
      // A frame may be too short to contain any reservoir bits.
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

  /// Returns the frames from an entry on, followed by repetitions if libsndfile would otherwise estimate too few
  /// frames.
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

  /// Fails if the words don't describe a stream.
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
  /// "LAME", "Lavf", and "Lavc".
  static let encoders: [UInt32] = [0x4C41_4D45, 0x4C61_7666, 0x4C61_7663]
}
