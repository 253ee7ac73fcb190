// Where sound files have their tags:
//
//   anything     ID3 tags, one after the other, at the start; MP3 also one at the end, whose footer is "3DI" and the
//                header's other bytes, or an APE tag, before an ID3v1 tag of 128 bytes if there is one
//   FLAC         "fLaC" *block; block = type (80: the last; 4: Vorbis comments) length(3) content
//   Ogg          *page; page = "OggS" version type granule(8) serial(4) number(4) CRC(4) count *length content; after a
//                length of 255, the packet goes on. The second packet of the sound's stream has the comments, after a
//                mark: "\3vorbis", "OpusTags", none (Speex), or a FLAC block's header
//   RIFF, AIFF   a chunk "id3 " or "ID3 "; in RIFF cue points (see CuePoints)

extension EmbeddedLabels {
  /// Tags longer than this are left out: there are pictures in them, but none of this size.
  static let tagLimit = 32 << 20
  private static let chunkLimit = 4096

  /// Adds the tracks in the tags of a sound file. Reads little else than the tags.
  package mutating func addTags(of file: inout some ByteSource, _ clock: EmbeddedClock) {
    var offset = 0
    for _ in 0..<16 {
      guard let length = ID3Tag.length(file.bytes(at: offset, count: ID3Tag.headerLength)) else { break }
      addID3(&file, at: offset, length: length, clock)
      offset += length
    }
    let mark = file.bytes(at: offset, count: 12)
    switch mark.prefix(4) {
    case "fLaC": addFLAC(&file, from: offset + 4, clock)
    case "OggS": addOgg(&file, from: offset, clock)
    case "RIFF", "RF64": addChunks(&file, isBigEndian: false, clock)
    case "FORM": addChunks(&file, isBigEndian: true, clock)
    case _ where mark.dropFirst(4).prefix(4).elementsEqual("ftyp".utf8): addMP4Cover(&file)
    default: addTagAtEnd(&file, clock)
    }
  }

  private mutating func addID3(
    _ file: inout some ByteSource, at offset: Int, length: Int, _ clock: EmbeddedClock
  ) {
    guard length <= Self.tagLimit else { return note(.tooMuch(.tags)) }
    guard let tag = ID3Tag(file.bytes(at: offset, count: length)) else { return note(.damaged(.tags)) }
    add(tag, clock)
    for frame in tag.frames where frame.id == "APIC" { addCover(&file, of: frame, at: offset, version: tag.version) }
  }

  private mutating func addTagAtEnd(_ file: inout some ByteSource, _ clock: EmbeddedClock) {
    for end in [file.length, file.length - 128] {
      if addAPE(&file, endingAt: end, clock) { return }
      guard let footer = file.whole(at: end - ID3Tag.headerLength, count: ID3Tag.headerLength),
        footer.starts(with: "3DI".utf8)
      else { continue }
      let length = 2 * ID3Tag.headerLength + ID3Tag.safe(footer.suffix(4))
      guard length <= end else { return note(.damaged(.tags)) }
      return addID3(&file, at: end - length, length: length, clock)
    }
  }

  private mutating func addFLAC(_ file: inout some ByteSource, from start: Int, _ clock: EmbeddedClock) {
    var offset = start
    for _ in 0..<Self.chunkLimit {
      guard let head = file.whole(at: offset, count: 4), let type = head.first, type & 0x7F < 0x7F else { return }
      let length = ID3Tag.number(head.dropFirst())
      if type & 0x7F == 4 { add(vorbisComments: file.bytes(at: offset + 4, count: length), clock) }
      if type & 0x7F == 6 { addCover(&file, ofFLACBlockAt: offset + 4) }
      guard type & 0x80 == 0 else { return }
      offset += 4 + length
    }
  }

  private mutating func addChunks(_ file: inout some ByteSource, isBigEndian: Bool, _ clock: EmbeddedClock) {
    var (offset, longDataLength, points): (Int, Int?, CuePoints) = (12, nil, CuePoints())
    defer { add(.cuePoints, .labels, name: "Cue points", points.labels) }
    for _ in 0..<Self.chunkLimit {
      guard let head = file.whole(at: offset, count: 8) else { return }
      let field = head.dropFirst(4)
      var length = isBigEndian ? ID3Tag.number(field) : ID3Tag.number(field.reversed())
      switch head.prefix(4) {
      case "id3 ", "ID3 ":
        let tag = file.bytes(at: offset + 8, count: ID3Tag.headerLength)
        if let tagLength = ID3Tag.length(tag) {
          addID3(&file, at: offset + 8, length: min(tagLength, length), clock)
        }
      case "ds64":
        let size = file.bytes(at: offset + 16, count: 8).reversed().prefix(8)
        longDataLength = size.first == 0 ? ID3Tag.number(size.dropFirst()) : nil
      case "fmt " where !isBigEndian: points.add(format: file.bytes(at: offset + 8, count: min(length, 16)))
      case "cue " where !isBigEndian && length <= Self.tagLimit:
        if !points.add(points: file.bytes(at: offset + 8, count: length)) { note(.damaged(.cuePoints)) }
      case "LIST" where !isBigEndian && length <= Self.tagLimit:
        let list = file.bytes(at: offset + 8, count: length)
        points.add(list: list)
        add(list: list)
      case "bext" where !isBigEndian: add(broadcast: file.bytes(at: offset + 8, count: min(length, 602)))
      case "data" where length == 0xFFFF_FFFF: length = longDataLength ?? length
      default: break
      }
      offset += 8 + length + length % 2
    }
  }

  private mutating func addOgg(_ file: inout some ByteSource, from start: Int, _ clock: EmbeddedClock) {
    var (packets, offset) = (OggPackets(limit: Self.tagLimit), start)
    while let page = OggPackets.Page(&file, at: offset) {
      packets.add(page)
      offset = page.end
      switch packets.state {
      case .searching: continue
      case .found(let comments): return add(vorbisComments: comments[...], clock)
      case .tooLong: return note(.tooMuch(.tags))
      case .none: return
      }
    }
  }
}

extension ArraySlice<UInt8> {
  fileprivate static func ~= (text: StaticString, bytes: Self) -> Bool { bytes.elementsEqual("\(text)".utf8) }
}

/// Collects the packet of an Ogg file that has the comments.
private struct OggPackets {
  struct Page {
    let serial: ArraySlice<UInt8>
    let lengths: ArraySlice<UInt8>
    let content: ArraySlice<UInt8>
    let end: Int

    init?(_ file: inout some ByteSource, at offset: Int) {
      guard let head = file.whole(at: offset, count: 27), head.starts(with: "OggS".utf8), let count = head.last,
        let lengths = file.whole(at: offset + 27, count: Int(count))
      else { return nil }
      (serial, self.lengths) = (head.dropFirst(14).prefix(4), lengths)
      let size = lengths.reduce(0) { $0 + Int($1) }
      content = file.bytes(at: offset + 27 + Int(count), count: size)
      end = offset + 27 + Int(count) + size
    }
  }

  enum State {
    case searching
    case found([UInt8])
    case tooLong, none
  }

  private(set) var state = State.searching
  private let limit: Int
  private var serial: [UInt8]?
  /// What precedes the comments in their packet.
  private var mark: [UInt8] = []
  private var packet: [UInt8] = []
  private var packetCount = 0
  private var pageCount = 0

  /// The first packets of the codecs, and the marks before their comments.
  private static let codecs: [(head: [UInt8], mark: [UInt8])] = [
    ([1] + Array("vorbis".utf8), [3] + Array("vorbis".utf8)), (Array("OpusHead".utf8), Array("OpusTags".utf8)),
    (Array("Speex   ".utf8), []), ([0x7F] + Array("FLAC".utf8), [4, 0, 0, 0]),
  ]

  init(limit: Int) { self.limit = limit }

  mutating func add(_ page: Page) {
    pageCount += 1
    // The sound's stream begins with the file; a video's packets may come before the comments.
    guard pageCount <= 1 << 16 else { return state = .none }
    if serial == nil {
      guard let codec = Self.codecs.first(where: { page.content.starts(with: $0.head) }) else { return }
      (serial, mark) = (Array(page.serial), codec.mark)
    }
    guard page.serial.elementsEqual(serial ?? []) else { return }
    var content = page.content
    for length in page.lengths {
      packet += content.prefix(Int(length))
      content = content.dropFirst(Int(length))
      guard packet.count <= limit else { return state = .tooLong }
      if length < 255 { endPacket() }
      guard case .searching = state else { return }
    }
  }

  private mutating func endPacket() {
    defer { packet = [] }
    packetCount += 1
    guard packetCount > 1 else { return }
    // FLAC's blocks may come in any order, with a length of their own.
    let isFLAC = mark.first == 4
    if isFLAC ? packet.first.map({ $0 & 0x7F == 4 }) ?? false : packet.starts(with: mark) {
      state = .found(Array(packet.dropFirst(mark.count)))
    } else if !isFLAC || packetCount > 64 {
      state = .none
    }
  }
}
