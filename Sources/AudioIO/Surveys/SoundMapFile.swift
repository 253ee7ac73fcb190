import Glibc
import Terms

// A sound map saved in a file, so that the first slice of a long MP3, Ogg, or FLAC file doesn't have to read all of it:
// 46 ms for two hours of Vorbis. It only repeats what the sound file contains, so if anything is wrong with it, the
// sound file is read instead.
//
// Little-endian 64-bit words:
//   0  "SWSNDMAP"                3  checksum of the words from 4 on: FNV-1a, a word at a time
//   1  version, 5                4  findings: streams, streams left out, their seconds (bits of a double), flags
//   2  bytes of the sound file      (1 lacks its end, 2 lacks its length, 4 wrong count), promised, found, foreign
//                                   bytes,
//                                  missing frames, leading bytes, trailing bytes
//  14  number of streams, then each: its first frame, its frames or −1, and
//        pieces   0, number of ranges, first byte and end of each
//        MPEG     1, first frame's header, frames, claimed frames or −1, flags (1 varying, 2 tells delay), delay,
//                 addition, number of ranges, first byte and end of each, number of entries, each
//        FLAC     2, 2 ranges: head and frames, sample rate, channels, depth, claimed frames or 0, first sample,
//                 samples, missing samples, whether it is headless, block size or 0

extension SoundMap {
  private static let magic: Int64 = 0x50_414D_444E_53_5753  // "SWSNDMAP", first letter in the lowest byte
  private static let version: Int64 = 5
  /// Larger than any map; whatever is at its path may be of any size.
  private static let byteLimit = 64 << 20

  /// Whether finding the sound requires reading the whole file.
  package var isWorthKeeping: Bool { [.mp3, .ogg, .flac].contains(header.container) }

  /// Reads the map of the sound file at `path` from the file that `kept` is open on. Fails if it is damaged, of another
  /// version, or for a file of another length. Throws like `init(path:)` if the file at `path` isn't sound.
  package init?(path: String, keptIn kept: Int32) throws(AudioIOError) {
    let header = try ContainerHeader(path: path)
    guard var words = Self.words(in: kept), words.next() == Self.magic, words.next() == Self.version,
      words.next() == header.fileSize, let sum = words.next(), sum == words.checksum
    else { return nil }
    words.offsetLimit = header.fileSize
    guard let findings = Findings(&words), let streams = Self.streams(&words) else { return nil }
    self.init(header: header, findings: findings, streams: streams)
  }

  /// Saves the map at `path`. It need not survive a power failure: a torn map is ignored.
  package func keep(at path: String) throws(AudioIOError) {
    var words = MapWords()
    findings.write(to: &words)
    words.append(Int64(streams.count))
    for stream in streams {
      words.append(stream.start)
      words.append(stream.frames ?? -1)
      switch stream.source {
      case .file: words.append([0, 0])
      case .pieces(let pieces):
        let ranges = pieces.compactMap { if case .range(let range) = $0 { range } else { nil } }
        guard ranges.count == pieces.count else { return }
        words.append(0)
        words.append(ranges)
      case .mpeg(let stream):
        words.append(1)
        stream.write(to: &words)
      case .flac(let stream):
        words.append(2)
        stream.write(to: &words)
      }
    }
    try words.store(at: path, head: [Self.magic, Self.version, header.fileSize, words.checksum])
  }

  private static func words(in descriptor: Int32) -> MapWords? {
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0, status.st_size % 8 == 0,
      (32...Self.byteLimit).contains(Int(status.st_size))
    else { return nil }
    var words = [Int64](repeating: 0, count: Int(status.st_size) / 8)
    let got = unsafe words.withUnsafeMutableBytes { unsafe pread(descriptor, $0.baseAddress, $0.count, 0) }
    return got == words.count * 8 ? MapWords(words) : nil
  }

  private static func streams(_ words: inout MapWords) -> [Stream]? {
    guard let count = words.next(in: 1...8192) else { return nil }
    var streams: [Stream] = []
    var expected: Int64? = 0
    for _ in 0..<count {
      guard let start = words.next(), start == expected, let frames = words.next(in: -1...MapWords.frameLimit),
        let kind = words.next(in: 0...2)
      else { return nil }
      let source: Stream.Source
      if kind == 1 {
        guard let stream = MPEGStream(&words) else { return nil }
        source = .mpeg(stream)
      } else if kind == 2 {
        guard let stream = FLACStream(&words) else { return nil }
        source = .flac(stream)
      } else {
        guard let ranges = words.ranges() else { return nil }
        source = ranges.isEmpty ? .file : .pieces(ranges.map(FilePiece.range))
      }
      streams.append(Stream(source: source, start: start, frames: frames < 0 ? nil : frames))
      // Only the last stream's length may depend on its decoder.
      expected = frames < 0 ? nil : start + frames
    }
    return words.isAtEnd ? streams : nil
  }
}

extension SoundMap.Findings {
  fileprivate func write(to words: inout MapWords) {
    let flags = (lacksEnd ? 1 : 0) | (lacksLength ? 2 : 0) | (wrongCount == nil ? 0 : 4)
    words.append([
      Int64(streams), Int64(streamsLeftOut), Int64(bitPattern: secondsLeftOut.bitPattern), Int64(flags),
      wrongCount?.promised ?? 0, wrongCount?.found ?? 0, foreignBytes, missingFrames, leadingBytes, trailingBytes,
    ])
  }

  fileprivate init?(_ words: inout MapWords) {
    guard let streams = words.next(in: 1...8192), let leftOut = words.next(in: 0...8192), let seconds = words.next(),
      let flags = words.next(in: 0...7), let promised = words.next(), let found = words.next(),
      let foreign = words.next(in: 0...Int64.max), let missing = words.next(in: 0...Int64.max),
      let leading = words.next(in: 0...Int64.max), let trailing = words.next(in: 0...Int64.max)
    else { return nil }
    self.streams = Int(streams)
    streamsLeftOut = Int(leftOut)
    secondsLeftOut = Double(bitPattern: UInt64(bitPattern: seconds))
    (lacksEnd, lacksLength) = (flags & 1 != 0, flags & 2 != 0)
    wrongCount = flags & 4 != 0 ? SoundMap.WrongCount(promised: promised, found: found) : nil
    (foreignBytes, missingFrames, leadingBytes, trailingBytes) = (foreign, missing, leading, trailing)
  }
}

/// The words of a saved map, written or read in sequence.
struct MapWords {
  /// Small enough that the sum of two doesn't overflow.
  static let frameLimit: Int64 = 1 << 48

  private var words: [Int64] = []
  private var position = 0
  /// Ranges and entries must lie below this.
  var offsetLimit: Int64 = 0

  init(_ words: [Int64] = []) { self.words = words.map(Int64.init(littleEndian:)) }

  /// The checksum of the words not read yet.
  var checksum: Int64 {
    var sum: UInt64 = 0xCBF2_9CE4_8422_2325
    for word in words[position...] { sum = (sum ^ UInt64(bitPattern: word)) &* 0x100_0000_01B3 }
    return Int64(bitPattern: sum)
  }

  var isAtEnd: Bool { position == words.count }

  mutating func next() -> Int64? {
    guard position < words.count else { return nil }
    position += 1
    return words[position - 1]
  }

  /// Returns the next word, or nil if it is out of range.
  mutating func next(in range: ClosedRange<Int64>) -> Int64? {
    guard let word = next(), range.contains(word) else { return nil }
    return word
  }

  /// Returns the next word as a count, or nil if fewer words are left.
  private mutating func count(of size: Int) -> Int? {
    next(in: 0...Int64((words.count - position) / size)).map { Int($0) }
  }

  /// Returns ranges of the file, in order.
  mutating func ranges() -> [Range<Int64>]? {
    guard let count = count(of: 2) else { return nil }
    var ranges: [Range<Int64>] = []
    ranges.reserveCapacity(count)
    for _ in 0..<count {
      let least = ranges.last?.upperBound ?? 0
      guard least <= offsetLimit, let first = next(in: least...offsetLimit), let end = next(in: first...offsetLimit)
      else { return nil }
      ranges.append(first..<end)
    }
    return ranges
  }

  /// Returns offsets in the file, in order.
  mutating func offsets() -> [Int64]? {
    guard let count = count(of: 1) else { return nil }
    var offsets: [Int64] = []
    offsets.reserveCapacity(count)
    for _ in 0..<count {
      guard let offset = next(in: (offsets.last ?? 0)...offsetLimit) else { return nil }
      offsets.append(offset)
    }
    return offsets
  }

  mutating func append(_ word: Int64) { words.append(word) }
  mutating func append(_ more: [Int64]) { words += more }

  mutating func append(_ ranges: [Range<Int64>]) {
    append(Int64(ranges.count))
    for range in ranges { append([range.lowerBound, range.upperBound]) }
  }

  /// Writes the file. If writing fails, no file is left.
  func store(at path: String, head: [Int64]) throws(AudioIOError) {
    do throws(AudioIOError) {
      try EncodedFile(creating: path).append((head + words).map(\.littleEndian))
    } catch {
      _ = unsafe unlink(path)
      throw error
    }
  }
}
