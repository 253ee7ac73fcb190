import Terms

// The names of tags:
//
//   ID3 2.3 and 2.4 (2.2)                    RIFF "INFO"   Vorbis, APE, and what ffprobe reports
//   TIT2 (TT2)                               INAM          TITLE
//   TPE1 (TP1)                               IART          ARTIST
//   TALB (TAL)                               IPRD          ALBUM
//   TPE2 (TP2)                                             ALBUMARTIST, ALBUM ARTIST, ALBUM_ARTIST
//   TCOM (TCM)                               IMUS          COMPOSER
//   TDRC, TYER (TYE)                         ICRD          DATE, YEAR
//   TRCK (TRK)                               ITRK, IPRT    TRACKNUMBER, TRACK
//   TCON (TCO)                               IGNR          GENRE
//   COMM (COM) without a description         ICMT          COMMENT, DESCRIPTION
//   TLAN (TLA)                               ILNG          LANGUAGE
//   TSSE, TENC (TSS, TEN)                    ISFT          ENCODER, ENCODED_BY, ENCODED-BY
//
//   bext  description(256) originator(32) reference(32) date(10) time(8) frames since midnight(8, little-endian) …
//
// Several values are joined; one that is there already, because a file has several kinds of tags, is left out.

extension EmbeddedLabels {
  typealias Tag = any WritableKeyPath<FileTags, String?> & Sendable

  static let tagsOfFrames: [String: Tag] = [
    "TIT2": \.title, "TPE1": \.artist, "TALB": \.album, "TPE2": \.albumArtist, "TCOM": \.composer, "TDRC": \.date,
    "TYER": \.date, "TRCK": \.track, "TCON": \.genre, "COMM": \.comment, "TLAN": \.language, "TSSE": \.encoder,
    "TENC": \.encoder,
  ]
  private static let tagsOfChunks: [String: Tag] = [
    "INAM": \.title, "IART": \.artist, "IPRD": \.album, "IMUS": \.composer, "ICRD": \.date, "ITRK": \.track,
    "IPRT": \.track, "IGNR": \.genre, "ICMT": \.comment, "ILNG": \.language, "ISFT": \.encoder,
  ]
  private static let tagsByName: [String: Tag] = [
    "TITLE": \.title, "ARTIST": \.artist, "ALBUM": \.album, "ALBUMARTIST": \.albumArtist, "ALBUM ARTIST": \.albumArtist,
    "ALBUM_ARTIST": \.albumArtist, "COMPOSER": \.composer, "DATE": \.date, "YEAR": \.date, "TRACKNUMBER": \.track,
    "TRACK": \.track, "GENRE": \.genre, "COMMENT": \.comment, "DESCRIPTION": \.comment, "LANGUAGE": \.language,
    "ENCODER": \.encoder, "ENCODED_BY": \.encoder, "ENCODED-BY": \.encoder,
    "SOFTWARE": \.encoder,
  ]

  /// Returns the tag of a Vorbis comment or of what is named alike, in capitals.
  static func tag(named name: String) -> Tag? { tagsByName[name] }

  /// Adds a value in UTF-8.
  mutating func add(_ tag: Tag, _ value: ArraySlice<UInt8>) {
    let text = Label.cut(normalText(value.prefix(4 * FileTags.textLimit)), to: FileTags.textLimit)
    guard !text.isEmpty else { return }
    guard let before = tags[keyPath: tag] else { return tags[keyPath: tag] = text }
    if before != text, !before.hasSuffix("; \(text)"), !before.hasPrefix("\(text); ") {
      tags[keyPath: tag] = Label.cut("\(before); \(text)", to: FileTags.textLimit)
    }
  }

  /// Adds the text of an ID3 frame, which may have several values.
  mutating func addText(of frame: ID3Tag.Frame) {
    guard !frame.isEncoded, let encoding = frame.content.first,
      var strings = ID3Strings(frame.content.dropFirst(), encoding: encoding)
    else { return tags.note(frame.id) }
    guard let tag = Self.tagsOfFrames[frame.id] else {
      switch frame.id {
      case "APIC": return
      case "USLT", "SYLT": return tags.note("lyrics")
      case "CHAP", "CTOC": return tags.note("chapters")
      case "TXXX": return tags.note(String(decoding: strings.next().prefix(FileTags.textLimit), as: UTF8.self))
      default: return tags.note(frame.id)
      }
    }
    if frame.id == "COMM", strings.take(3) == nil || !strings.next().isEmpty { return tags.note(frame.id) }
    for _ in 0..<32 where !strings.rest.isEmpty { add(tag, strings.next()[...]) }
  }

  /// Adds the texts of a RIFF list.
  mutating func add(list content: ArraySlice<UInt8>) {
    guard content.starts(with: "INFO".utf8) else { return }
    var rest = content.dropFirst(4)
    while rest.count >= 8 {
      let length = ID3Tag.number(rest.dropFirst(4).prefix(4).reversed())
      let name = String(decoding: rest.prefix(4), as: UTF8.self)
      if let tag = Self.tagsOfChunks[name] { add(tag, text: rest.dropFirst(8).prefix(length)) } else { tags.note(name) }
      rest = rest.dropFirst(8 + length + length % 2)
    }
  }

  /// Adds the chunk `bext` of Broadcast Wave.
  mutating func add(broadcast content: ArraySlice<UInt8>) {
    guard content.count >= 346 else { return }
    add(\.comment, text: content.prefix(256))
    add(\.encoder, text: content.dropFirst(256).prefix(32))
    add(\.date, text: content.dropFirst(320).prefix(10))
    let frames = content.dropFirst(338).prefix(8).reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    tags.timeReference = Int64(exactly: frames)
  }

  /// Adds a text that NUL ends, of an encoding that isn't stated.
  mutating func add(_ tag: Tag, text: ArraySlice<UInt8>) {
    guard let source = try? SourceText(Array(text.prefix(4 * FileTags.textLimit).prefix { $0 != 0 })) else { return }
    add(tag, source.bytes[...])
  }

  // MARK: Cover

  private static let coverLimit = 16 << 20

  /// Adds a picture. `isFront`: whether the file says that it is the front; otherwise only the first one counts.
  mutating func addCover(_ file: inout some ByteSource, at offset: Int, length: Int, isFront: Bool) {
    guard isFront ? !hasFront : tags.cover == nil, length > 0, length <= Self.coverLimit,
      offset <= file.length - length,
      let picture = PictureSize(file.bytes(at: offset, count: length))
    else { return }
    hasFront = isFront
    tags.cover = FileCover(
      type: picture.type, offset: Int64(offset), bytes: Int64(length), width: picture.width, height: picture.height)
  }

  /// Adds the picture of an ID3 frame, if its bytes are as in the file.
  mutating func addCover(_ file: inout some ByteSource, of frame: ID3Tag.Frame, at tagOffset: Int, version: UInt8) {
    guard let place = frame.place, !frame.isEncoded, let encoding = frame.content.first else { return }
    let content = frame.content
    // “PIC” has three letters in place of a media type.
    let typeIndex =
      version == 2
      ? content.startIndex + 4 : (content.dropFirst().firstIndex(of: 0) ?? content.endIndex) + 1
    guard typeIndex < content.endIndex, var strings = ID3Strings(content[(typeIndex + 1)...], encoding: encoding) else {
      return
    }
    _ = strings.next()
    let skipped = content.count - strings.rest.count
    addCover(
      &file, at: tagOffset + place + skipped, length: strings.rest.count, isFront: content[typeIndex] == 3)
  }

  /// Adds the picture of a FLAC block: type(4), media type and description, each after its length(4), four numbers,
  /// length(4), picture.
  mutating func addCover(_ file: inout some ByteSource, ofFLACBlockAt offset: Int) {
    func number(_ offset: Int) -> Int { ID3Tag.number(file.bytes(at: offset, count: 4)) }
    let (type, typeLength) = (number(offset), number(offset + 4))
    let descriptionLength = number(offset + 8 + typeLength)
    let place = offset + 12 + typeLength + descriptionLength + 16
    let length = number(place)
    addCover(&file, at: place + 4, length: length, isFront: type == 3)
  }

  /// Adds the picture of an MP4: moov, udta, meta, ilst, covr, data(16).
  mutating func addMP4Cover(_ file: inout some ByteSource) {
    var range = 0..<file.length
    for name in ["moov", "udta", "meta", "ilst", "covr", "data"] {
      guard let found = Self.box(name, in: range, of: &file) else { return }
      // “meta” has a version.
      range = name == "meta" ? min(found.lowerBound + 4, found.upperBound)..<found.upperBound : found
    }
    guard range.count > 8 else { return }
    addCover(&file, at: range.lowerBound + 8, length: range.count - 8, isFront: false)
  }

  private static func box(_ name: String, in range: Range<Int>, of file: inout some ByteSource) -> Range<Int>? {
    var offset = range.lowerBound
    for _ in 0..<4096 {
      guard offset + 8 <= range.upperBound, let head = file.whole(at: offset, count: 8) else { return nil }
      var (length, start) = (ID3Tag.number(head.prefix(4)), 8)
      if length == 1, let long = file.whole(at: offset + 8, count: 8), long.first == 0 {
        (length, start) = (ID3Tag.number(long.dropFirst()), 16)
      }
      if length == 0 { length = range.upperBound - offset }
      guard length >= start, length <= range.upperBound - offset else { return nil }
      if head.dropFirst(4).elementsEqual(name.utf8) { return offset + start..<offset + length }
      offset += length
    }
    return nil
  }
}

/// The kind and the size of a picture, by its first bytes.
private struct PictureSize {
  let type: String
  let width, height: Int

  init?(_ bytes: ArraySlice<UInt8>) {
    func number(_ offset: Int, _ count: Int) -> Int { ID3Tag.number(bytes.dropFirst(offset).prefix(count)) }
    if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]), bytes.count >= 24 {
      (type, width, height) = ("image/png", number(16, 4), number(20, 4))
    } else if bytes.starts(with: "GIF8".utf8), bytes.count >= 10 {
      func little(_ offset: Int) -> Int { ID3Tag.number(bytes.dropFirst(offset).prefix(2).reversed()) }
      (type, width, height) = ("image/gif", little(6), little(8))
    } else if bytes.starts(with: [0xFF, 0xD8, 0xFF]), let frame = Self.frame(ofJPEG: bytes) {
      (type, width, height) = ("image/jpeg", number(frame + 7, 2), number(frame + 5, 2))
    } else {
      return nil
    }
    guard (1...1 << 16).contains(width), (1...1 << 16).contains(height) else { return nil }
  }

  /// Returns where the marker with the size is: C0 to CF but C4, C8 and CC.
  private static func frame(ofJPEG bytes: ArraySlice<UInt8>) -> Int? {
    var offset = 2
    for _ in 0..<1024 {
      let head = bytes.dropFirst(offset).prefix(9)
      guard head.count == 9, head.first == 0xFF, let marker = head.dropFirst().first else { return nil }
      if marker == 0xFF {
        offset += 1
        continue
      }
      if (0xC0...0xCF).contains(marker), ![0xC4, 0xC8, 0xCC].contains(marker) { return offset }
      offset += 2 + ID3Tag.number(head.dropFirst(2).prefix(2))
    }
    return nil
  }
}
