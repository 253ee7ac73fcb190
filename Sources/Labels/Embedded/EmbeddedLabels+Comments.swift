// Vorbis comments (https://xiph.org/vorbis/doc/v-comment.html), which Ogg and FLAC have; all numbers little-endian:
//
//   comments = length(4) vendor count(4) *(length(4) NAME "=" value)
//
//   LYRICS, UNSYNCEDLYRICS, SYNCEDLYRICS    a text, or LRC
//   CHAPTER001=00:01:30.500                 a chapter's start (https://wiki.xiph.org/Chapter_Extension)
//   CHAPTER001NAME=…                        its title
//
// Names ignore case. Other containers have tags by the same names.

extension EmbeddedLabels {
  /// Adds the tracks of Vorbis comments.
  mutating func add(vorbisComments bytes: ArraySlice<UInt8>, _ clock: EmbeddedClock) {
    var rest = bytes
    func take(_ count: Int) -> ArraySlice<UInt8>? {
      guard rest.count >= count else { return nil }
      defer { rest = rest.dropFirst(count) }
      return rest.prefix(count)
    }
    func number() -> Int? { take(4).map { $0.reversed().reduce(0) { $0 << 8 | Int($1) } } }
    var comments = TaggedComments()
    guard let vendor = number(), take(vendor) != nil, let count = number() else { return note(.damaged(.tags)) }
    for _ in 0..<count {
      guard let length = number(), let comment = take(length) else {
        note(.damaged(.tags))
        break
      }
      guard let equals = comment.firstIndex(of: UInt8(ascii: "=")) else { continue }
      comments.add(comment[..<equals], comment[(equals + 1)...])
    }
    add(comments, clock)
  }

  /// Adds the tracks of tags.
  mutating func add(_ comments: TaggedComments, _ clock: EmbeddedClock) {
    for lyrics in comments.lyrics { addLyrics(Array(lyrics), clock) }
    for (tag, value) in comments.tags { add(tag, value) }
    for name in comments.others { tags.note(name) }
    if let frames = comments.timeReference { tags.timeReference = frames }
    let (chapters, isDamaged) = comments.chapters(duration: clock.duration)
    if isDamaged { note(.invalid(.chapters, .badTime)) }
    add(.chapters, .chapters, chapters)
  }
}

/// Tags that have a name and a text in UTF-8.
struct TaggedComments {
  private(set) var lyrics: [ArraySlice<UInt8>] = []
  private(set) var tags: [(EmbeddedLabels.Tag, ArraySlice<UInt8>)] = []
  private(set) var timeReference: Int64?
  /// Names of other tags.
  private(set) var others: [String] = []
  private var starts: [(number: String, time: ArraySlice<UInt8>)] = []
  private var titles: [String: ArraySlice<UInt8>] = [:]

  private static let namesOfLyrics: Set<String> = [
    "LYRICS", "UNSYNCEDLYRICS", "UNSYNCED LYRICS", "SYNCEDLYRICS", "WM/LYRICS",
  ]

  /// Pictures, and what writers say of the file itself.
  private static let namesOfNothing: Set<String> = [
    "METADATA_BLOCK_PICTURE", "COVERART", "MAJOR_BRAND", "MINOR_VERSION", "COMPATIBLE_BRANDS", "CREATION_TIME",
    "ITUNSMPB", "VENDOR_ID", "HANDLER_NAME", "ISVBR", "WM/ENCODINGTIME", "WMFSDKVERSION", "WMFSDKNEEDED",
    "DEVICECONFORMANCETEMPLATE", "DURATION", "ENCODING",
  ]

  /// Adds a tag, unless it has no labels.
  mutating func add(_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) {
    guard name.count <= 64 else { return }
    let name = String(decoding: name, as: UTF8.self).uppercased()
    if Self.namesOfLyrics.contains(name) || name.hasPrefix("LYRICS-") {
      lyrics.append(value)
      others.append("lyrics")
    } else if let tag = EmbeddedLabels.tag(named: name) {
      if tags.count < 1024 { tags.append((tag, value)) }
    } else if name == "TIME_REFERENCE" {
      timeReference = Int64(String(decoding: value.prefix(20), as: UTF8.self)).flatMap { $0 < 0 ? nil : $0 }
    } else if name.hasPrefix("CHAPTER"), starts.count < LabelLimits.labels {
      let number = name.dropFirst(7).prefix { $0.isASCII && $0.isNumber }
      guard !number.isEmpty else { return }
      if starts.isEmpty { others.append("chapters") }
      switch name.dropFirst(7 + number.count) {
      case "": starts.append((String(number), value))
      case "NAME": titles[String(number)] = value
      default: break
      }
    } else if !Self.namesOfNothing.contains(name), others.count < 1024 {
      others.append(name)
    }
  }

  /// Returns the chapters, and whether some have no valid time.
  func chapters(duration: MediaTime?) -> (labels: [Label], isDamaged: Bool) {
    var (labels, isDamaged) = ([Label](), false)
    for (number, time) in starts {
      let bytes = Array(time)
      let range = bytes.firstIndex { !ASCII.isBlank($0) }.map { $0..<bytes.count } ?? 0..<0
      guard let start = try? TimeParser(bytes: bytes).clock(range) else {
        isDamaged = true
        continue
      }
      let title = titles[number].map { normalText($0) } ?? ""
      labels.append(Label(start: start, end: PodcastChapters.openEnd, text: title))
    }
    labels = LabelCollector.sorted(labels)
    PodcastChapters.close(&labels, duration)
    return (labels, isDamaged)
  }
}
