// ID3v2 tags (https://id3.org/id3v2-00, id3v2.3.0, id3v2.4.0-structure). Sizes are big-endian; a “safe” number has
// seven bits per byte.
//
//   tag     = "ID3" version revision flags size(safe) [extended header] *frame *padding [footer]
//   flags   = 80 unsynchronized: after each FF, a 00 was inserted; 40 extended header (in 2.2: compressed)
//   frame   = ID size [flags] content
//             2.2: 3 letters, 3 bytes;   2.3: 4 letters, 4 bytes, 2 bytes;   2.4: the same with a safe size
//   flags   = 2.3: 0080 compressed, 0040 encrypted, 0020 grouped
//             2.4: 0040 grouped, 0008 compressed, 0004 encrypted, 0002 unsynchronized, 0001 length given
//
// Before the content stand, in 2.3: the length (4 bytes) if compressed, the method (1) if encrypted, the group (1) if
// grouped; in 2.4: the group, the method, and the length if given. Until 2.3 the whole tag is unsynchronized, from 2.4
// on each frame. Some programs (an iTunes of 2008) write plain sizes in 2.4; the next frame's ID shows which it is.

/// The frames of a tag that may have labels, texts or pictures.
struct ID3Tag {
  struct Frame {
    /// As in 2.3 and later: “USLT”.
    let id: String
    let content: ArraySlice<UInt8>
    /// Whether the content is compressed or encrypted.
    let isEncoded: Bool
    /// Where the content is in the tag; nil if bytes were inserted into it.
    let place: Int?
  }

  let version: UInt8
  private(set) var frames: [Frame] = []
  private(set) var isDamaged = false
  private var isUnsynchronized = false
  /// The index of the tag's first byte.
  private let start: Int

  /// Length of a tag's header.
  static let headerLength = 10
  private static let wanted: Set<String> =
    Set(EmbeddedLabels.tagsOfFrames.keys).union(["USLT", "SYLT", "CHAP", "CTOC", "APIC"])
  private static let olderNames = [
    "ULT": "USLT", "SLT": "SYLT", "PIC": "APIC", "TT2": "TIT2", "TP1": "TPE1", "TAL": "TALB", "TP2": "TPE2",
    "TCM": "TCOM", "TYE": "TYER", "TRK": "TRCK", "TCO": "TCON", "COM": "COMM", "TLA": "TLAN", "TSS": "TSSE",
    "TEN": "TENC",
  ]
  /// A tag of the greatest length has some million frames of nothing.
  private static let frameLimit = 100_000

  /// Returns the length of the whole tag that begins with these bytes, or nil if none does.
  static func length(_ head: ArraySlice<UInt8>) -> Int? {
    guard head.count >= headerLength, head.starts(with: "ID3".utf8) else { return nil }
    let hasFooter = head[head.startIndex + 3] == 4 && head[head.startIndex + 5] & 0x10 != 0
    return headerLength + safe(head.dropFirst(6).prefix(4)) + (hasFooter ? headerLength : 0)
  }

  /// Parses a tag from its header on, as far as the bytes go. Fails if it has an unknown version.
  init?(_ bytes: ArraySlice<UInt8>) {
    guard let length = Self.length(bytes) else { return nil }
    (version, start) = (bytes[bytes.startIndex + 3], bytes.startIndex)
    guard (2...4).contains(version) else { return nil }
    let flags = bytes[bytes.startIndex + 5]
    var body = bytes.prefix(length).dropFirst(Self.headerLength)
    isDamaged = bytes.count < length
    isUnsynchronized = flags & 0x80 != 0
    if isUnsynchronized, version < 4 { body = Self.synchronized(body)[...] }
    // In 2.2, the flag says that the tag is compressed in a way that was never defined.
    if flags & 0x40 != 0 { body = version == 2 ? [] : body.dropFirst(Self.extendedHeaderLength(body, version)) }
    frames = frames(in: body)
  }

  /// Returns the frames in a tag's or a chapter's bytes, without those that no labels are made of.
  func frames(in bytes: ArraySlice<UInt8>) -> [Frame] {
    var (rest, frames) = (bytes, [Frame]())
    let headLength = version == 2 ? 6 : 10
    for _ in 0..<Self.frameLimit {
      guard rest.count > headLength, Self.isName(rest.prefix(version == 2 ? 3 : 4)) else { break }
      let head = rest.prefix(headLength)
      let size = self.size(rest, headLength)
      rest = rest.dropFirst(headLength)
      if let frame = frame(head, rest.prefix(size)) { frames.append(frame) }
      guard size <= rest.count else { break }
      rest = rest.dropFirst(size)
    }
    return frames
  }

  private func size(_ rest: ArraySlice<UInt8>, _ headLength: Int) -> Int {
    if version == 2 { return Self.number(rest.dropFirst(3).prefix(3)) }
    let field = rest.dropFirst(4).prefix(4)
    let plain = Self.number(field)
    guard version == 4, !field.contains(where: { $0 >= 0x80 }) else { return plain }
    let safe = Self.safe(field)
    func isFollowed(_ size: Int) -> Bool {
      let next = rest.dropFirst(headLength + size)
      return rest.count >= headLength + size && (next.isEmpty || next.first == 0 || Self.isName(next.prefix(4)))
    }
    return safe != plain && !isFollowed(safe) && isFollowed(plain) ? plain : safe
  }

  /// Returns a frame, or nil if it isn't wanted.
  private func frame(_ head: ArraySlice<UInt8>, _ bytes: ArraySlice<UInt8>) -> Frame? {
    let name = String(decoding: head.prefix(version == 2 ? 3 : 4), as: UTF8.self)
    let id = version == 2 ? Self.olderNames[name] ?? name : name
    guard Self.wanted.contains(id) else { return nil }
    func frame(_ content: ArraySlice<UInt8>, isEncoded: Bool = false, isMoved: Bool = false) -> Frame {
      let place = isMoved || isUnsynchronized ? nil : content.startIndex - start
      return Frame(id: id, content: content, isEncoded: isEncoded, place: place)
    }
    guard version > 2, let flags = head.last else { return frame(bytes) }
    if version == 3 { return frame(bytes.dropFirst(flags & 0x20 != 0 ? 1 : 0), isEncoded: flags & 0xC0 != 0) }
    var content = bytes.dropFirst((flags & 0x40 != 0 ? 1 : 0) + (flags & 0x01 != 0 ? 4 : 0))
    if flags & 0x02 != 0 || isUnsynchronized { content = Self.synchronized(content)[...] }
    return frame(content, isEncoded: flags & 0x0C != 0, isMoved: flags & 0x02 != 0)
  }

  private static func extendedHeaderLength(_ body: ArraySlice<UInt8>, _ version: UInt8) -> Int {
    let field = body.prefix(4)
    return version == 4 ? safe(field) : number(field) + 4
  }

  private static func isName(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes.count >= 3 && bytes.allSatisfy { (0x41...0x5A).contains($0) || ASCII.isDigit($0) }
  }

  /// Removes each 00 that follows an FF.
  private static func synchronized(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    var (kept, isAfterFF) = ([UInt8](), false)
    kept.reserveCapacity(bytes.count)
    for byte in bytes {
      if !isAfterFF || byte != 0 { kept.append(byte) }
      isAfterFF = byte == 0xFF
    }
    return kept
  }

  static func safe(_ bytes: some Sequence<UInt8>) -> Int { bytes.reduce(0) { $0 << 7 | Int($1 & 0x7F) } }
  static func number(_ bytes: some Sequence<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }
}

/// The strings of a frame, which share one encoding: 0 Latin-1, 1 UTF-16 with a mark, 2 UTF-16BE, 3 UTF-8.
struct ID3Strings {
  private(set) var rest: ArraySlice<UInt8>
  private let encoding: UInt8
  /// For strings without a mark: the order of the one before, or else Windows'.
  private var isBigEndian = false

  /// Fails if the encoding is unknown.
  init?(_ bytes: ArraySlice<UInt8>, encoding: UInt8) {
    guard encoding <= 3 else { return nil }
    (rest, self.encoding) = (bytes, encoding)
    isBigEndian = encoding == 2
  }

  /// Returns the next string in UTF-8, up to its NUL or the end, and moves behind it.
  mutating func next() -> [UInt8] {
    let isWide = encoding == 1 || encoding == 2
    var end = rest.startIndex
    if isWide {
      while end + 1 < rest.endIndex, rest[end] != 0 || rest[end + 1] != 0 { end += 2 }
      if end + 1 >= rest.endIndex { end = rest.endIndex }
    } else {
      end = rest.firstIndex(of: 0) ?? rest.endIndex
    }
    var text = rest[..<end]
    rest = rest[end...].dropFirst(isWide ? 2 : 1)
    guard isWide else {
      return encoding == 0 ? SourceText.utf8(windows1252: text) : Array(String(decoding: text, as: UTF8.self).utf8)
    }
    if text.starts(with: [0xFE, 0xFF]) || text.starts(with: [0xFF, 0xFE]) {
      isBigEndian = text.first == 0xFE
      text = text.dropFirst(2)
    }
    return SourceText.utf8(utf16: text, isBigEndian: isBigEndian)
  }

  /// Returns `count` bytes that belong to no string, or nil if the frame ends before, and moves behind them.
  mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
    guard rest.count >= count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }
}
