// MPEG audio is frames and nothing else; how many there are stands nowhere, but in a frame of silence that most
// encoders put first and fill with it ("Xing", "Info" or "VBRI"). libsndfile reckons with that count, or else with the
// first frames' bit rate, and stops there: of a file of varying rate it may decode less than half without a word.
//
// A frame's header, ISO 11172-3 2.4.1.3 (bits): sync 11, version 2, layer 2, protection 1, bit rate 4, sample rate 2,
// padding 1, private 1, mode 2, …. Its length in bytes, header included:
//   layer I    (12 · bit rate / sample rate + padding) · 4,      384 samples
//   layer II   144 · bit rate / sample rate + padding,           1152 samples
//   layer III  the same; version 2 and 2.5: half of it,          1152 samples; 576

/// What the bytes of an MP3 file promise, found by stepping from frame to frame.
public struct MPEGSurvey: Sendable {
  /// Samples per channel in all frames that hold sound.
  public private(set) var frames: Int64 = 0
  /// Whether the first frame tells their number.
  public private(set) var hasCount = false

  /// Where the first frame begins.
  private(set) var firstOffset: Int64 = 0
  private var firstHead: [UInt8] = []
  /// Bytes of all frames, and of all the file but the tag at its beginning.
  private var (coveredBytes, soundBytes): (Int64, Int64) = (0, 0)

  /// Reads all of the file at `path`, at the speed of the disk.
  public init(path: String) throws(AudioIOError) { try self.init(path: path, onlyWithoutCount: false) }

  /// Looks no further than the first frame where that tells the number of them.
  init(path: String, onlyWithoutCount: Bool) throws(AudioIOError) {
    var file = try ByteWindow(path: path)
    var offset = try Self.endOfTag(&file)
    soundBytes = file.size - offset
    var last: MPEGFrameHeader?
    while let head = try file.bytes(at: offset, count: 4) {
      // Any byte pair may look like a frame: one counts where it is like the one before, or another like it follows.
      guard let header = MPEGFrameHeader(head), try header.continues(last, in: &file, at: offset) else {
        offset += 1
        last = nil
        continue
      }
      guard offset + Int64(header.length) <= file.size else { return }
      if frames == 0, !hasCount, try Self.isCount(&file, at: offset) {
        hasCount = true
        if onlyWithoutCount { return }
      } else {
        if frames == 0 { (firstOffset, firstHead) = (offset, Array(head)) }
        frames += Int64(header.samples)
      }
      coveredBytes += Int64(header.length)
      offset += Int64(header.length)
      last = header
    }
  }

  /// A frame of silence that tells the number of the frames, to put before the first one; nil where there is one already
  /// or the file isn't made of frames of layer III (a tag may stand before FLAC, too).
  ///
  /// "Xing", flags (1: the number of frames follows), the number; after the side information of the frame's kind. The
  /// bit rate is the ninth, at which every kind of frame has room for it.
  var countingFrame: [UInt8]? {
    guard !hasCount, frames > 0, coveredBytes > soundBytes / 2, firstHead[1] & 0x06 == 0x02 else { return nil }
    let head = [0xFF, firstHead[1] | 1, firstHead[2] & 0x0C | 0x90, firstHead[3]]
    guard let header = MPEGFrameHeader(head[...]) else { return nil }
    let (isFirst, isMono) = (head[1] & 0x08 != 0, head[3] & 0xC0 == 0xC0)
    let place = 4 + (isFirst ? (isMono ? 17 : 32) : (isMono ? 9 : 17))
    let number = UInt32(clamping: frames / Int64(header.samples))
    let mark =
      Array("Xing".utf8) + [0, 0, 0, 1] + (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * UInt32($0))) }
    var frame = head + [UInt8](repeating: 0, count: header.length - head.count)
    frame.replaceSubrange(place..<place + mark.count, with: mark)
    return frame
  }

  /// ID3v2 at the beginning: its length in four groups of seven bits.
  private static func endOfTag(_ file: inout ByteWindow) throws(AudioIOError) -> Int64 {
    guard let tag = try file.bytes(at: 0, count: 10), tag.starts(with: "ID3".utf8) else { return 0 }
    return tag.suffix(4).reduce(Int64(0)) { $0 << 7 | Int64($1 & 0x7F) } + 10
  }

  private static func isCount(_ file: inout ByteWindow, at offset: Int64) throws(AudioIOError) -> Bool {
    // It stands after the side information, whose length depends on version and mode.
    for place: Int64 in [13, 21, 36] {
      guard let mark = try file.bytes(at: offset + place, count: 4) else { return false }
      if ["Xing", "Info", "VBRI"].contains(where: { mark.elementsEqual($0.utf8) }) { return true }
    }
    return false
  }
}

struct MPEGFrameHeader {
  private let identity: [UInt8]
  let length: Int
  let samples: Int

  /// nil where the four bytes are none, or tell no length.
  init?(_ bytes: ArraySlice<UInt8>) {
    let head = Array(bytes)
    guard head.count == 4, head[0] == 0xFF, head[1] & 0xE0 == 0xE0 else { return nil }
    let (version, layer) = (Int(head[1] >> 3 & 3), 4 - Int(head[1] >> 1 & 3))
    let (rateIndex, bitRateIndex) = (Int(head[2] >> 2 & 3), Int(head[2] >> 4))
    guard version != 1, layer != 4, rateIndex != 3, (1...14).contains(bitRateIndex) else { return nil }
    let isFirst = version == 3
    let sampleRate = [44_100, 48_000, 32_000][rateIndex] / (isFirst ? 1 : version == 2 ? 2 : 4)
    let bitRate = 1000 * Self.bitRates[isFirst ? layer - 1 : layer == 1 ? 3 : 4][bitRateIndex - 1]
    let padding = Int(head[2] >> 1 & 1)
    switch layer {
    case 1: (length, samples) = ((12 * bitRate / sampleRate + padding) * 4, 384)
    case 3 where !isFirst: (length, samples) = (72 * bitRate / sampleRate + padding, 576)
    default: (length, samples) = (144 * bitRate / sampleRate + padding, 1152)
    }
    identity = [head[1] & 0x1E, head[2] & 0x0C]
  }

  /// Whether the frame before, or else the one after, is of the same version, layer and sample rate.
  func continues(
    _ last: Self?, in file: inout ByteWindow, at offset: Int64
  ) throws(AudioIOError) -> Bool {
    if let last { return identity == last.identity }
    guard let next = try file.bytes(at: offset + Int64(length), count: 4) else { return false }
    return MPEGFrameHeader(next)?.identity == identity
  }

  /// kbit/s: version 1 layers I, II, III; versions 2 and 2.5 layer I, layers II and III.
  private static let bitRates = [
    [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  ]
}
