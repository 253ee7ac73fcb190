// What ffprobe says about an MP4 file of AAC and nothing else, such as a phone's memo, is in a few boxes of its header.
// Reading them here saves a program whose start takes 0.09 s of processor time. Any other file, and any with a box that
// isn't listed here, is left to ffprobe.
//
//   ftyp                    32: brand; QuickTime's has other sample descriptions
//   moov
//     mvhd   full           time created, time changed, 32: units per second
//     trak
//       edts, elst   full   32: number of edits; for each, time in the movie's units: duration, time in the track's
//                           units: start, 32: rate (65,536 is 1)
//       mdia
//         mdhd   full       time created, time changed, 32: units per second, time: duration, 16: language
//         hdlr   full       32, type: "soun"
//         minf, stbl
//           stsd   full     32: number of descriptions; the box "mp4a": 28 bytes, then "esds" and perhaps "btrt"
//           stsz   full     32: size of all packets, or 0; 32: number of packets; without the former, 32: size of each
//           stts   full     32: number of entries; for each, 32: number of packets, 32: duration of each
//           stsc, stco or co64   where the packets are: 32: number of entries, of 12, 4 and 8 bytes
//     udta                  titles; a cover would be a track
//
//   esds   full             descriptors: a tag of 8 bits and a size of 7 bits per byte (ISO 14496-1 §7.2.6)
//     3                     16: identifier, 8: flags
//     4                     8: object type (0x40: AAC), 32, 32: maximum bit rate, 32: average bit rate
//     5                     5: kind of AAC, and more
//
// ffmpeg ignores both bit rates and computes it from the packets.

/// The headers of an MP4 file whose only track is AAC.
struct SoundBoxes: Equatable {
  /// Length of the track in seconds, by its packets, its header and its edit list.
  private(set) var duration = 0.0
  /// Whether it has an edit list.
  private(set) var isEdited = false
  /// Bit rate in bits per second.
  private(set) var bitRate = 0
  /// Three letters.
  private(set) var language = ""

  private static let top: Set<String> = ["ftyp", "moov", "mdat*", "free*", "skip*", "wide*"]

  /// Reads the file at `path`. Fails if it is of another kind or incomplete, or if it has an unlisted box. Needs about
  /// fifty small reads.
  init?(path: String) {
    guard let file = FileStart(path: path), let boxes = BoxList(file, 0..<file.length, Self.top),
      let brand = boxes.all.first, brand.type == "ftyp", brand.bytes(4) != Array("qt  ".utf8), boxes["mdat"] != nil,
      let parts = boxes["moov"]?.boxes(["mvhd", "trak", "iods", "udta", "free*", "skip*"]),
      let head = parts["mvhd"], let track = parts["trak"]?.boxes(["tkhd", "edts", "mdia", "free*"]),
      let media = track["mdia"]?.boxes(["mdhd", "hdlr", "minf", "free*"]), media["hdlr"]?.kind == "soun",
      let table = media["minf"]?.boxes(["smhd", "dinf", "stbl", "free*"])?["stbl"]?.boxes(Self.table),
      parts["udta"].map(Self.isPlain) ?? true, Self.hasPackets(table)
    else { return nil }
    guard table["stsd"].map(Self.isAAC) == true, let bytes = table["stsz"].flatMap(Self.byteCount),
      read(media["mdhd"], table["stts"], track["edts"], movie: head, bytes: bytes)
    else { return nil }
  }

  private static let table: Set<String> = ["stsd", "stts", "stsc", "stsz", "stco", "co64", "sgpd*", "sbgp*", "free*"]

  /// Whether the packets have places.
  private static func hasPackets(_ table: BoxList) -> Bool {
    func isWhole(_ list: Box?, _ size: Int) -> Bool {
      guard let list else { return false }
      let count = list.number(at: 4, 4)
      return count > 0 && list.length == 8 + size * count
    }
    return isWhole(table["stsc"], 12) && (isWhole(table["stco"], 4) || isWhole(table["co64"], 8))
  }

  /// What ffprobe would say about the file.
  var tracks: TrackList {
    var sound = TrackList.Answer.Stream(codec_name: "aac", codec_type: "audio", codec_tag_string: "mp4a", index: 0)
    // ffprobe writes six decimal places.
    sound.duration = "\((duration * 1e6).rounded() / 1e6)"
    sound.start_time = isEdited ? "0" : nil
    sound.bit_rate = bitRate > 0 ? "\(bitRate)" : nil
    sound.tags = TrackList.Answer.Stream.Tags(language: language)
    return TrackList([sound])
  }
}

// MARK: Times

extension SoundBoxes {
  /// Limits times, bytes and units so that products, as numbers of 64 bits, don't overflow.
  private static let (timeLimit, byteLimit, unitLimit) = (1 << 36, 1 << 35, 1 << 24)

  private mutating func read(_ media: Box?, _ times: Box?, _ edits: Box?, movie: Box, bytes: Int) -> Bool {
    guard let media, let packets = times.flatMap(Self.duration) else { return false }
    let isLong = media.hasLongTimes
    let units = media.number(at: isLong ? 20 : 12, 4)
    let length = media.number(at: isLong ? 24 : 16, isLong ? 8 : 4)
    // Of 32 bits, the greatest means that the length is unknown.
    guard (1..<Self.unitLimit).contains(units), (1..<min(Self.timeLimit, 0xFFFF_FFFF)).contains(length),
      read(language: media.number(at: isLong ? 32 : 20, 2))
    else { return false }
    var end = min(length, packets)
    bitRate = 8 * bytes * units / end
    if let edits {
      let movieUnits = movie.number(at: movie.hasLongTimes ? 20 : 12, 4)
      guard let shown = edits.boxes(["elst"])?["elst"].flatMap({ Self.duration(of: $0, units, movieUnits) }) else {
        return false
      }
      (isEdited, end) = (true, min(end, shown))
    }
    duration = Double(end) * (1 / Double(units))
    return end > 0
  }

  /// Returns the sum of the packets' durations; nil if one isn't plausible, or if there are too many entries.
  private static func duration(of times: Box) -> Int? {
    let count = times.number(at: 4, 4)
    guard (1...1024).contains(count), times.length == 8 + 8 * count else { return nil }
    var sum = 0
    for entry in 0..<count {
      let (packets, each) = (times.number(at: 8 + 8 * entry, 4), times.number(at: 12 + 8 * entry, 4))
      guard packets > 0, (1..<unitLimit).contains(each) else { return nil }
      sum += packets * each
      guard sum < timeLimit else { return nil }
    }
    return sum
  }

  /// Returns the sum of the packets' sizes; nil if one isn't plausible, or if there are too many packets.
  private static func byteCount(of sizes: Box) -> Int? {
    let (common, count) = (sizes.number(at: 4, 4), sizes.number(at: 8, 4))
    guard (1..<unitLimit).contains(count), common <= packetLimit else { return nil }
    guard common == 0 else { return sizes.length == 12 && common * count < byteLimit ? common * count : nil }
    guard sizes.length == 12 + 4 * count else { return nil }
    var sum = 0
    for start in stride(from: 12, to: sizes.length, by: 65_536) {
      let bytes = sizes.bytes(65_536, from: start)
      for place in stride(from: 0, to: bytes.count - 3, by: 4) {
        let size = bytes[place..<place + 4].reduce(0) { $0 << 8 | Int($1) }
        guard size <= packetLimit else { return nil }
        sum += size
      }
    }
    return sum < byteLimit ? sum : nil
  }

  /// Greater packets are an error in ffmpeg.
  private static let packetLimit = 0x3FFF_FFFF

  /// Returns the duration of the only edit, in the track's units; nil if there are more, or if it isn't plausible.
  private static func duration(of edits: Box, _ units: Int, _ movieUnits: Int) -> Int? {
    let size = edits.hasLongTimes ? 8 : 4
    guard movieUnits > 0, edits.number(at: 4, 4) == 1, edits.length == 12 + 2 * size else { return nil }
    let (length, start) = (edits.number(at: 8, size), edits.number(at: 8 + size, size))
    let isPlain = (1..<timeLimit).contains(length) && (0..<0x7FFF_FFFF).contains(start)
    guard isPlain, edits.number(at: 8 + 2 * size, 4) == 65_536 else { return nil }
    return (length * units + movieUnits / 2) / movieUnits
  }

  /// Reads three letters of five bits each. Returns false if they are one of QuickTime's numbers.
  private mutating func read(language code: Int) -> Bool {
    guard code >= 0x400, code != 0x7FFF else { return false }
    language = String(decoding: [10, 5, 0].map { UInt8(0x60 + (code >> $0 & 31)) }, as: UTF8.self)
    return true
  }
}

// MARK: The codec and the titles

extension SoundBoxes {
  /// Whether the only description is that of AAC.
  private static func isAAC(_ descriptions: Box) -> Bool {
    guard descriptions.number(at: 4, 4) == 1, let sound = descriptions.boxes(["mp4a"], from: 8)?["mp4a"],
      // Other versions are longer.
      sound.number(at: 8, 2) == 0, let parts = sound.boxes(["esds", "btrt"], from: 28), let coding = parts["esds"]
    else { return false }
    var rest = coding.bytes(256).dropFirst(4)
    // Passes a descriptor's tag and size.
    func begins(_ tag: UInt8) -> Bool {
      guard rest.popFirst() == tag else { return false }
      for _ in 0..<4 where rest.popFirst() ?? 0 < 0x80 { return true }
      return false
    }
    guard begins(3), rest.count > 3, rest[rest.startIndex + 2] == 0 else { return false }
    rest = rest.dropFirst(3)
    guard begins(4), rest.first == 0x40, rest.count > 13 else { return false }
    rest = rest.dropFirst(13)
    // AAC LC, alone, with SBR (5), or with SBR and PS (29).
    return begins(5) && rest.first.map { [2, 5, 29].contains($0 >> 3) } == true
  }

  /// Whether these are only iTunes' titles, without covers and QuickTime's long keys.
  private static func isPlain(_ data: Box) -> Bool {
    guard let parts = data.boxes(["meta", "free*"]) else { return false }
    guard let meta = parts["meta"] else { return true }
    guard let lists = meta.boxes(["hdlr", "ilst", "free*"], from: 4), lists["hdlr"]?.kind == "mdir" else {
      return false
    }
    guard let titles = lists["ilst"] else { return true }
    return titles.boxes(nil)?.all.allSatisfy(isPlainTitle) ?? false
  }

  private static func isPlainTitle(_ title: Box) -> Bool {
    if title.type == "----" {
      return !String(decoding: title.bytes(512), as: UTF8.self).contains("com.apple.quicktime")
    }
    return title.type.hasPrefix("\u{A9}") || plainTitles.contains(title.type)
  }

  private static let plainTitles: Set<String> = [
    "aART", "cprt", "cpil", "desc", "disk", "gnre", "ldes", "pgap", "rtng", "stik", "tmpo", "trkn",
  ]
}

extension Box {
  /// The type in a handler box.
  fileprivate var kind: String { String(decoding: bytes(12).dropFirst(8), as: UTF8.self) }
}
