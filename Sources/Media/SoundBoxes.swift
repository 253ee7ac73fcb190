// What ffprobe says about an MP4 file of AAC and nothing else, such as a phone's memo, is in a few boxes of its header.
// Reading them here saves a program whose start takes 0.09 s of processor time. Any other file is left to ffprobe: one
// with a box that isn't listed here, with boxes in another order where ffmpeg minds, or whose tables disagree.
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
//           stsc     full   32: number of entries; for each, 32: its first chunk, 32: packets in each, 32: description
//           stco or co64    full   32: number of chunks; 32 or 64: place of each
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
      parts.begins(with: ["mvhd"]), let head = parts["mvhd"], parts["udta"].map(Self.isPlain) ?? true,
      let track = parts["trak"]?.boxes(["tkhd", "edts", "mdia", "free*"]),
      let media = track["mdia"]?.boxes(["mdhd", "hdlr", "minf", "free*"]),
      media.begins(with: ["mdhd", "hdlr", "minf"]), media["hdlr"]?.kind == "soun",
      let table = media["minf"]?.boxes(["smhd", "dinf", "stbl", "free*"])?["stbl"]?.boxes(Self.table),
      table.begins(with: ["stsd"]), table["stsd"].map(Self.isAAC) == true
    else { return nil }
    guard let (bytes, packets) = table["stsz"].flatMap(Self.sizes), Self.placedPackets(table) == packets,
      let times = table["stts"].flatMap(Self.times), times.packets == packets,
      read(media["mdhd"], track["edts"], movie: head, packets: times.duration, bytes: bytes)
    else { return nil }
  }

  /// Returns the length of the first sound track by its packets, in seconds, which may be longer than its header says;
  /// nil if the file has an edit list, which has its own length, or is incomplete.
  static func packetSeconds(path: String) -> Double? {
    guard let file = FileStart(path: path),
      let movie = BoxList(file, 0..<file.length, nil)?["moov"]?.boxes(nil)
    else { return nil }
    for track in movie.all where track.type == "trak" {
      let parts = track.boxes(nil)
      guard let media = parts?["mdia"]?.boxes(nil), media["hdlr"]?.kind == "soun" else { continue }
      guard parts?["edts"] == nil, let head = media["mdhd"],
        let times = media["minf"]?.boxes(nil)?["stbl"]?.boxes(nil)?["stts"].flatMap(times)
      else { return nil }
      let units = head.number(at: head.hasLongTimes ? 20 : 12, 4)
      return units > 0 ? Double(times.duration) / Double(units) : nil
    }
    return nil
  }

  private static let table: Set<String> = ["stsd", "stts", "stsc", "stsz", "stco", "co64", "sgpd*", "sbgp*", "free*"]

  /// Returns the number of packets in the chunks; nil if the tables are incomplete, or not plausible.
  private static func placedPackets(_ table: BoxList) -> Int? {
    guard let list = table["stsc"], let chunks = entries(table["stco"], of: 4) ?? entries(table["co64"], of: 8),
      (table["stco"] == nil) != (table["co64"] == nil), let count = entries(list, of: 12), count <= chunkLimit
    else { return nil }
    let bytes = list.bytes(12 * count, from: 8)
    guard bytes.count == 12 * count else { return nil }
    func number(_ entry: Int, _ place: Int) -> Int {
      bytes[12 * entry + place..<12 * entry + place + 4].reduce(0) { $0 << 8 | Int($1) }
    }
    var (next, packets) = (1, 0)
    for entry in 0..<count {
      let end = entry + 1 < count ? number(entry + 1, 0) : chunks + 1
      let each = number(entry, 4)
      guard number(entry, 0) == next, end > next, end <= chunks + 1, (1..<unitLimit).contains(each),
        number(entry, 8) == 1
      else { return nil }
      packets += (end - next) * each
      guard packets < unitLimit else { return nil }
      next = end
    }
    return packets
  }

  /// Returns the number of entries of a table that consists of them; nil if there are none.
  private static func entries(_ list: Box?, of size: Int) -> Int? {
    guard let list else { return nil }
    let count = list.number(at: 4, 4)
    return count > 0 && list.length == 8 + size * count ? count : nil
  }
}

// MARK: Times

extension SoundBoxes {
  /// Limits times, bytes, and units and packets so that products, as numbers of 64 bits, don't overflow.
  private static let (timeLimit, byteLimit, unitLimit) = (1 << 36, 1 << 35, 1 << 24)
  /// Maximum number of entries for chunks: a phone begins another with almost every chunk, of about a second.
  private static let chunkLimit = 1 << 16

  private mutating func read(_ media: Box?, _ edits: Box?, movie: Box, packets: Int, bytes: Int) -> Bool {
    guard let media else { return false }
    let isLong = media.hasLongTimes
    let units = media.number(at: isLong ? 20 : 12, 4)
    let length = media.number(at: isLong ? 24 : 16, isLong ? 8 : 4)
    // Of 32 bits, the greatest means that the length is unknown.
    guard (1..<Self.unitLimit).contains(units), (1..<min(Self.timeLimit, 0xFFFF_FFFF)).contains(length),
      read(language: media.number(at: isLong ? 32 : 20, 2))
    else { return false }
    var end = min(length, packets)
    bitRate = 8 * bytes * units / end
    // Without an edit list, players go on to the last packet.
    if edits == nil { end = packets }
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

  /// Returns the number of packets and the sum of their durations; nil if one isn't plausible, or if there are too many
  /// entries.
  private static func times(of list: Box) -> (packets: Int, duration: Int)? {
    guard let count = entries(list, of: 8), count <= 1024 else { return nil }
    var (packets, sum) = (0, 0)
    for entry in 0..<count {
      let (number, each) = (list.number(at: 8 + 8 * entry, 4), list.number(at: 12 + 8 * entry, 4))
      guard (1..<unitLimit).contains(number), (1..<unitLimit).contains(each) else { return nil }
      packets += number
      sum += number * each
      guard sum < timeLimit else { return nil }
    }
    return (packets, sum)
  }

  /// Returns the sum of the packets' sizes and their number; nil if all are of one size, which AAC's aren't, if one
  /// isn't plausible, or if there are too many.
  private static func sizes(of sizes: Box) -> (bytes: Int, packets: Int)? {
    let count = sizes.number(at: 8, 4)
    guard sizes.number(at: 4, 4) == 0, (1..<unitLimit).contains(count), sizes.length == 12 + 4 * count else {
      return nil
    }
    var sum = 0
    for start in stride(from: 12, to: sizes.length, by: 65_536) {
      let bytes = sizes.bytes(65_536, from: start)
      for place in stride(from: 0, to: bytes.count - 3, by: 4) {
        let size = bytes[place..<place + 4].reduce(0) { $0 << 8 | Int($1) }
        guard size <= packetLimit else { return nil }
        sum += size
      }
    }
    return sum < byteLimit ? (sum, count) : nil
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
