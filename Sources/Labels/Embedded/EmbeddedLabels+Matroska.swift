// Subtitles in Matroska and WebM (RFC 9559; https://www.matroska.org/technical/subtitles.html), and in what ffmpeg
// writes for other video files. An element is an ID, a size and a content; of a number's leading zeros, one more than
// there are is the number of its bytes, and all ones as a size mean that it is unknown.
//
//   1A45DFA3 header
//   18538067 segment    1549A966 information    2AD7B1 nanoseconds per unit of time (1,000,000)
//                       1654AE6B tracks   AE track   D7 number, 83 type (17: subtitles), 86 codec, 536E name,
//                                         22B59C language, 22B59D the same as in RFC 5646, 6D80 codings
//                       1F43B675 cluster  E7 time, A3 block, A0 group of A1 block and 9B duration
//   block               = track's number, time (16 bits, after the cluster's), flags (06: several frames), content
//   codings             6240 coding  5034 compression  4254 kind (0 zlib, 3 common start), 4255 the start
//                                    5035 encryption
//
// Elements with others inside are entered without regard to their ends, so that one pass finds all blocks, even in a
// file that was cut or is damaged.

extension EmbeddedLabels {
  /// Adds the subtitles of a Matroska file that has some. Reads the heads of all elements, if any are text.
  package mutating func addSubtitles(ofMatroska file: inout some ByteSource, _ clock: EmbeddedClock) {
    var reader = MatroskaReader()
    reader.read(&file)
    if reader.isDamaged { note(.damaged(.subtitles)) }
    if reader.isTooMuch { note(.tooMuch(.subtitles)) }
    for track in reader.tracks where !track.cues.isEmpty {
      guard !track.isCompressed, !track.isEncrypted else {
        note(.unsupported(.subtitles))
        continue
      }
      var (labels, fault): ([Label], LabelsFault?) = ([], nil)
      for cue in track.cues {
        labels += EmbeddedCue(cue, track.codec, clock, fault: &fault).labels
      }
      if let fault { note(.invalid(.subtitles, fault)) }
      labels = LabelCollector.sorted(labels)
      PodcastChapters.close(&labels, clock.duration)
      let kind: EmbeddedTrack.Kind = track.codec == .webvttMetadata ? .labels : .transcript
      add(.subtitles, kind, name: track.name ?? "Subtitles", language: track.language, labels)
    }
  }
}

/// The codecs of subtitles that are text.
enum SubtitleCodec: String, Sendable {
  case subRip = "S_TEXT/UTF8"
  case ascii = "S_TEXT/ASCII"
  case ass = "S_TEXT/ASS"
  case ssa = "S_TEXT/SSA"
  case webvtt = "S_TEXT/WEBVTT"
  case webvttSubtitles = "D_WEBVTT/SUBTITLES"
  case webvttCaptions = "D_WEBVTT/CAPTIONS"
  case webvttDescriptions = "D_WEBVTT/DESCRIPTIONS"
  case webvttMetadata = "D_WEBVTT/METADATA"
}

/// A subtitle as a container holds it.
struct RawCue: Sendable {
  /// On the file's clock, in microseconds.
  var start: Int64
  /// In microseconds; nil if it isn't given.
  var duration: Int64?
  var content: [UInt8]
}

/// Reads the subtitles out of a Matroska file.
struct MatroskaReader {
  struct Track {
    var number = 0
    var type = 0
    var codecName = ""
    var name: String?
    var language: String?
    var commonStart: [UInt8] = []
    var isCompressed = false
    var isEncrypted = false
    var cues: [RawCue] = []

    var codec: SubtitleCodec { SubtitleCodec(rawValue: codecName) ?? .subRip }
    var isText: Bool { type == 17 && SubtitleCodec(rawValue: codecName) != nil }
  }

  private(set) var tracks: [Track] = []
  private(set) var isDamaged = false
  private(set) var isTooMuch = false
  private var unit: Int64 = 1_000_000
  private var clusterTime: Int64 = 0
  /// The track and the place of the cue that a duration belongs to.
  private var latest: (track: Int, cue: Int)?
  private var byteCount = 0
  private var cueCount = 0

  /// Elements that may be entered or skipped. A day of film has ten million; reading this many takes seconds.
  private static let elementLimit = 40_000_000
  private static let trackLimit = 1024
  private static let byteLimit = 2 * LabelLimits.bytes
  private static let entered: Set<UInt32> = [
    0x1853_8067, 0x1549_A966, 0x1654_AE6B, 0xAE, 0x6D80, 0x6240, 0x5034, 0x1F43_B675, 0xA0,
  ]
  private static let readable: Set<UInt32> = [
    0x2AD7B1, 0xD7, 0x83, 0x86, 0x536E, 0x22B59C, 0x22B59D, 0x4254, 0x4255, 0xE7, 0x9B,
  ]

  /// Reads a file to its end, or until it can have no subtitles.
  mutating func read(_ file: inout some ByteSource) {
    var offset = 0
    for _ in 0..<Self.elementLimit {
      let head = file.bytes(at: offset, count: 12)
      guard let first = head.first else { return }
      guard let (id, size, length) = Self.element(head) else { return isDamaged = isDamaged || first != 0 }
      offset += length
      if id == 0x1F43_B675 {
        latest = nil
        // Tracks come before the first cluster.
        guard tracks.contains(where: \.isText) else { return }
      }
      if id == 0xAE {
        guard tracks.count < Self.trackLimit else { return isTooMuch = true }
        tracks.append(Track())
      }
      // Without a kind, it is zlib.
      if id == 0x5034 { change { $0.isCompressed = true } }
      if Self.entered.contains(id) { continue }
      guard let size, size <= file.length - offset else { return isDamaged = true }
      switch id {
      case 0xA1, 0xA3: addBlock(&file, at: offset, size: size)
      case 0x5035: change { $0.isEncrypted = true }
      case _ where Self.readable.contains(id) && size <= 1024: take(id, file.bytes(at: offset, count: size))
      default: break
      }
      guard !isTooMuch else { return }
      offset += size
    }
    isTooMuch = true
  }

  /// Returns an element's ID, its size, and the number of bytes that these take.
  private static func element(_ head: ArraySlice<UInt8>) -> (id: UInt32, size: Int?, length: Int)? {
    guard let first = head.first, first >= 0x10 else { return nil }
    let idLength = first.leadingZeroBitCount + 1
    guard let (size, sizeLength) = number(head.dropFirst(idLength)) else { return nil }
    return (head.prefix(idLength).reduce(0) { $0 << 8 | UInt32($1) }, size, idLength + sizeLength)
  }

  /// Returns a number with its length; nil as the number stands for an unknown size.
  private static func number(_ bytes: ArraySlice<UInt8>) -> (value: Int?, length: Int)? {
    guard let first = bytes.first, first != 0 else { return nil }
    let length = first.leadingZeroBitCount + 1
    guard bytes.count >= length else { return nil }
    let bits = 7 * length
    let value = bytes.prefix(length).reduce(0) { $0 << 8 | Int($1) } & (1 << bits - 1)
    return (value == 1 << bits - 1 ? nil : value, length)
  }

  private mutating func change(_ body: (inout Track) -> Void) {
    guard !tracks.isEmpty else { return }
    body(&tracks[tracks.count - 1])
  }

  private mutating func take(_ id: UInt32, _ content: ArraySlice<UInt8>) {
    let number = content.prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    let small = Int64(clamping: number)
    let text = String(decoding: content.prefix { $0 != 0 }, as: UTF8.self)
    switch id {
    case 0x2AD7B1: unit = min(max(small, 1), 1_000_000_000_000)
    case 0xE7: clusterTime = small
    case 0x9B:
      if let latest { tracks[latest.track].cues[latest.cue].duration = microseconds(small) }
    case 0xD7: change { $0.number = Int(small) }
    case 0x83: change { $0.type = Int(small) }
    case 0x86: change { $0.codecName = text }
    case 0x536E: change { $0.name = text }
    case 0x22B59C: change { $0.language = $0.language ?? text }
    case 0x22B59D: change { $0.language = text }
    case 0x4254: change { $0.isCompressed = number != 3 }
    case 0x4255: change { $0.commonStart = Array(content) }
    default: break
    }
  }

  private func microseconds(_ units: Int64) -> Int64 {
    let (product, overflow) = units.multipliedReportingOverflow(by: unit)
    return overflow ? (units < 0 ? .min : .max) / 1000 : product / 1000
  }

  private mutating func addBlock(_ file: inout some ByteSource, at offset: Int, size: Int) {
    latest = nil
    let head = file.bytes(at: offset, count: min(size, 11))
    guard let (value, length) = Self.number(head), let value, head.count >= length + 3,
      let index = tracks.firstIndex(where: { $0.number == value }), tracks[index].isText
    else { return }
    let flags = head[head.startIndex + length + 2]
    guard flags & 0x06 == 0 else { return isDamaged = true }
    let bits = UInt16(head[head.startIndex + length]) << 8 | UInt16(head[head.startIndex + length + 1])
    let (time, overflow) = clusterTime.addingReportingOverflow(Int64(Int16(bitPattern: bits)))
    let contentLength = size - length - 3
    (byteCount, cueCount) = (byteCount + contentLength, cueCount + 1)
    guard byteCount <= Self.byteLimit, cueCount <= LabelLimits.labels else { return isTooMuch = true }
    guard !overflow, let content = file.whole(at: offset + length + 3, count: contentLength) else {
      return isDamaged = true
    }
    tracks[index].cues.append(RawCue(start: microseconds(time), content: tracks[index].commonStart + content))
    latest = (index, tracks[index].cues.count - 1)
  }
}
