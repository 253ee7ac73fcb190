// The frames of ID3 that have labels (https://id3.org/id3v2.4.0-frames §4.8, §4.9, and id3v2-chapters-1.0):
//
//   USLT  encoding language(3) description NUL text                                     lyrics without times
//   SYLT  encoding language(3) unit type description NUL *(text NUL time(4))            lyrics with times
//         unit: 1 MPEG frames, 2 milliseconds; type: 0 other, 1 lyrics, 2 transcription, 3 movements, 4 events,
//         5 chords, 6 trivia, 7 and 8 addresses of pages and pictures, which are left out
//   CHAP  name NUL start(4) end(4) offset(4) offset(4) *frame                           times in milliseconds
//   CTOC  name NUL flags count *(name NUL) *frame                                       flags: 2 top level
//
// If there is a table of contents, only the chapters in it count: podcasts have hidden ones that only change the
// picture. A time of FFFFFFFF isn't given.

extension EmbeddedLabels {
  /// Adds the tracks of a tag.
  mutating func add(_ tag: ID3Tag, _ clock: EmbeddedClock) {
    if tag.isDamaged { note(.damaged(.tags)) }
    var chapters = ID3Chapters()
    for frame in tag.frames {
      addText(of: frame)
      let part: EmbeddedPart? =
        switch frame.id {
        case "USLT": .lyrics
        case "SYLT": .timedLyrics
        case "CHAP", "CTOC": .chapters
        default: nil
        }
      guard let part else { continue }
      guard !frame.isEncoded else {
        note(.unsupported(part))
        continue
      }
      let isSound =
        switch frame.id {
        case "USLT": addLyrics(frame.content, clock)
        case "SYLT": addTimedLyrics(frame.content, clock)
        case "CHAP": chapters.addChapter(frame.content, tag)
        default: chapters.addTable(frame.content, tag)
        }
      if !isSound { note(.damaged(part)) }
    }
    add(.chapters, .chapters, name: chapters.title, chapters.labels(duration: clock.duration))
  }

  /// Returns false if the frame is damaged.
  private mutating func addLyrics(_ content: ArraySlice<UInt8>, _ clock: EmbeddedClock) -> Bool {
    guard let encoding = content.first, var strings = ID3Strings(content.dropFirst(), encoding: encoding),
      let language = strings.take(3)
    else { return false }
    let name = String(decoding: strings.next(), as: UTF8.self)
    addLyrics(
      strings.next(), name: name, language: String(decoding: language, as: UTF8.self), clock)
    return true
  }

  /// Adds a text of lyrics in UTF-8. If it is LRC, it has times; otherwise it is one label as long as the recording.
  mutating func addLyrics(_ bytes: [UInt8], name: String? = nil, language: String? = nil, _ clock: EmbeddedClock) {
    guard bytes.count <= LabelLimits.bytes else { return note(.tooMuch(.lyrics)) }
    let hasTimes = bytes.split(whereSeparator: { $0 == ASCII.lineFeed || $0 == ASCII.carriageReturn }).lazy
      .contains { $0.first == ASCII.openBracket && $0.dropFirst().first.map(ASCII.isDigit) ?? false }
    if hasTimes, let file = try? LabelFile(parsing: bytes, as: .lrc, duration: clock.duration, isStrict: true),
      !file.labels.isEmpty
    {
      let title = name.flatMap { $0.isEmpty ? nil : $0 } ?? file.title
      return add(.lyrics, .lyrics, name: title, language: language ?? file.language, file.labels)
    }
    let text = normalText(bytes[...])
    guard !text.isEmpty else { return }
    let whole = Label(start: .zero, end: clock.duration ?? .zero, text: text)
    add(.lyrics, .lyrics, name: name, language: language, [whole])
  }

  /// Pieces of one text: forty hours of speech. Each takes some hundred bytes of memory.
  private static let pieceLimit = 400_000

  /// Returns false if the frame is damaged; what precedes the damage is added.
  private mutating func addTimedLyrics(_ content: ArraySlice<UInt8>, _ clock: EmbeddedClock) -> Bool {
    guard let encoding = content.first, var strings = ID3Strings(content.dropFirst(), encoding: encoding),
      let language = strings.take(3), let head = strings.take(2), let unit = head.first, let type = head.last
    else { return false }
    let kind: EmbeddedTrack.Kind
    switch type {
    case 0, 1: kind = .lyrics
    case 2: kind = .transcript
    case 7, 8: return true
    default: kind = .labels
    }
    guard let scale = unit == 2 ? 1000 : unit == 1 ? clock.mpegFrameMicroseconds : nil else {
      note(.unsupported(.timedLyrics))
      return true
    }
    let name = String(decoding: strings.next(), as: UTF8.self)
    var (text, count, isWhole) = (SungText(), 0, true)
    while !strings.rest.isEmpty, isWhole {
      let piece = strings.next()
      count += 1
      guard count <= Self.pieceLimit else {
        note(.tooMuch(.timedLyrics))
        return true
      }
      guard let time = strings.take(4) else {
        // Padding behind the last piece is no damage.
        isWhole = piece.isEmpty
        break
      }
      let microseconds = (Double(ID3Tag.number(time)) * scale).rounded()
      text.append(piece, at: MediaTime(clamping: Int64(min(microseconds, 0x1p62))))
    }
    add(
      .timedLyrics, kind, name: name, language: String(decoding: language, as: UTF8.self),
      text.labels(duration: clock.duration))
    return isWhole
  }
}

/// The chapters of a tag.
private struct ID3Chapters {
  private var chapters: [(name: [UInt8], label: Label)] = []
  private var tables: [[UInt8]: [[UInt8]]] = [:]
  private var top: [UInt8]?
  private(set) var title: String?

  private static let noTime = 0xFFFF_FFFF

  /// Returns false if the frame is damaged.
  mutating func addChapter(_ content: ArraySlice<UInt8>, _ tag: ID3Tag) -> Bool {
    guard let (name, rest) = Self.name(content), rest.count >= 16 else { return false }
    let start = ID3Tag.number(rest.prefix(4))
    let end = ID3Tag.number(rest.dropFirst(4).prefix(4))
    guard start != Self.noTime, chapters.count < LabelLimits.labels else { return false }
    let first = MediaTime(clamping: Int64(start) * 1000)
    let last = end == Self.noTime || end < start ? PodcastChapters.openEnd : MediaTime(clamping: Int64(end) * 1000)
    chapters.append((name, Label(start: first, end: last, text: Self.title(rest.dropFirst(16), tag) ?? "")))
    return true
  }

  /// Returns false if the frame is damaged.
  mutating func addTable(_ content: ArraySlice<UInt8>, _ tag: ID3Tag) -> Bool {
    guard let (name, rest) = Self.name(content), let flags = rest.first, let count = rest.dropFirst().first else {
      return false
    }
    var (children, bytes) = ([[UInt8]](), rest.dropFirst(2))
    for _ in 0..<count {
      guard let (child, behind) = Self.name(bytes) else { return false }
      children.append(child)
      bytes = behind
    }
    if tables[name] == nil { tables[name] = children }
    if flags & 2 != 0, top == nil { (top, title) = (name, Self.title(bytes, tag)) }
    return true
  }

  func labels(duration: MediaTime?) -> [Label] {
    let listed = listedNames()
    let shown = chapters.filter { listed.contains($0.name) }
    var labels = LabelCollector.sorted((shown.isEmpty ? chapters : shown).map(\.label))
    PodcastChapters.close(&labels, duration)
    return labels
  }

  /// The names in the table of contents and the tables in it.
  private func listedNames() -> Set<[UInt8]> {
    var (listed, waiting) = (Set<[UInt8]>(), top.map { [$0] } ?? [])
    while let name = waiting.popLast() {
      guard listed.insert(name).inserted else { continue }
      waiting += tables[name] ?? []
    }
    return listed
  }

  /// Splits a name from the bytes behind its NUL.
  private static func name(_ bytes: ArraySlice<UInt8>) -> (name: [UInt8], rest: ArraySlice<UInt8>)? {
    guard let end = bytes.firstIndex(of: 0) else { return nil }
    return (Array(bytes[..<end]), bytes[(end + 1)...])
  }

  private static func title(_ bytes: ArraySlice<UInt8>, _ tag: ID3Tag) -> String? {
    guard let frame = tag.frames(in: bytes).first(where: { $0.id == "TIT2" && !$0.isEncoded }),
      let encoding = frame.content.first, var strings = ID3Strings(frame.content.dropFirst(), encoding: encoding)
    else { return nil }
    return normalText(strings.next()[...])
  }
}
