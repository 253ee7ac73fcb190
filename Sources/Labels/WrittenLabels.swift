/// Something that a format can't hold.
package enum LeftOut: String, CaseIterable, Sendable {
  /// Labels without a text.
  case emptyLabels = "empty-labels"
  /// The ends of labels that overlap others.
  case ends
  /// Limits of frequencies.
  case frequencies
  /// That a chapter isn't listed.
  case hidden
  /// Addresses of pictures.
  case images
  /// Line breaks within a text, which become spaces, or empty lines, which are removed.
  case lineBreaks = "line-breaks"
  /// Places that chapters are about.
  case locations
  /// Text that the format would read as markup.
  case markup
  /// The parts of times that are finer than the format's.
  case precision
  case speakers
  /// Addresses of pages.
  case urls
  /// The ends of words that overlap the next.
  case wordEnds = "word-ends"
  /// Times of words.
  case words
}

/// Labels written in a format.
package struct WrittenLabels: Equatable, Sendable {
  /// The file, in UTF-8.
  package internal(set) var bytes: [UInt8] = []
  /// What the format can't hold, in the order of `LeftOut`; empty if reading the file gives the same labels again.
  package var leftOut: [LeftOut] { LeftOut.allCases.filter(omissions.contains) }

  private var omissions: Set<LeftOut> = []

  init() {}

  /// Writes labels, which must be valid and sorted by start. O(n).
  package init(_ labels: [Label], as format: LabelFormat) {
    switch format {
    case .json: self = LabelsJSON.write(labels)
    case .vtt: self = WebVTT.write(labels)
    case .srt: self = SubRip.write(labels)
    case .lrc: self = LRC.write(labels)
    case .audacity: self = AudacityLabels.write(labels)
    case .chapters: self = PodcastChapters.write(labels)
    default: preconditionFailure("\(format) is only read")
    }
    guard format != .json else { return }
    for details in labels.lazy.map(\.details) where details != LabelDetails() {
      leaveOut(details: details, butFrequencies: format == .audacity, butThoseOfChapters: format == .chapters)
    }
  }

  /// Notes that details were left out, but perhaps some.
  mutating func leaveOut(
    details: LabelDetails, butFrequencies keepsFrequencies: Bool = false, butThoseOfChapters isPodcast: Bool = false
  ) {
    leaveOut(.frequencies, if: (details.minHz != nil || details.maxHz != nil) && !keepsFrequencies)
    leaveOut(.hidden, if: details.isHidden && !isPodcast)
    leaveOut(.images, if: details.image != nil && !isPodcast)
    leaveOut(.locations, if: details.location != nil && !isPodcast)
    leaveOut(.urls, if: details.url != nil && !isPodcast)
  }

  /// Notes that something was left out, if so.
  mutating func leaveOut(_ what: LeftOut, if isSo: Bool = true) {
    if isSo { omissions.insert(what) }
  }

  mutating func write(_ text: StaticString) {
    text.withUTF8Buffer { unsafe bytes.append(contentsOf: $0) }
  }
  mutating func write(_ text: String) { bytes.append(contentsOf: text.utf8) }
  mutating func write(_ byte: UInt8) { bytes.append(byte) }
  mutating func write(_ text: some Collection<UInt8>) { bytes.append(contentsOf: text) }

  /// Writes a whole number with at least `width` digits.
  mutating func write(_ number: Int64, width: Int = 1) {
    var divisor: Int64 = 1
    for _ in 1..<max(1, width) { divisor *= 10 }
    while number / divisor >= 10 { divisor *= 10 }
    while divisor > 0 {
      bytes.append(0x30 + UInt8(truncatingIfNeeded: number / divisor % 10))
      divisor /= 10
    }
  }

  /// Writes decimal seconds, with at least `digits` and at most six digits after the point.
  mutating func write(seconds time: MediaTime, digits: Int = 0) {
    write(time.microseconds / 1_000_000)
    var (rest, count) = (time.microseconds % 1_000_000, 6)
    while count > digits, rest % 10 == 0 { (rest, count) = (rest / 10, count - 1) }
    guard count > 0 else { return }
    write(ASCII.dot)
    write(rest, width: count)
  }

  /// Writes a frequency in Hz.
  mutating func write(hz: Double, digits: Int = 0) {
    if let sameNumber = MediaTime(seconds: hz) { write(seconds: sameNumber, digits: digits) }
  }

  /// Writes hours, minutes, seconds and milliseconds.
  mutating func write(clock time: MediaTime, fraction separator: UInt8) {
    leaveOut(.precision, if: !time.isWholeMilliseconds)
    let milliseconds = time.milliseconds
    write(milliseconds / 3_600_000, width: 2)
    write(ASCII.colon)
    write(milliseconds / 60_000 % 60, width: 2)
    write(ASCII.colon)
    write(milliseconds / 1000 % 60, width: 2)
    write(separator)
    write(milliseconds % 1000, width: 3)
  }

  /// Writes a text in one line.
  mutating func write(line text: String) {
    guard text.utf8.contains(ASCII.lineFeed) else { return write(text) }
    leaveOut(.lineBreaks)
    write(text.utf8.lazy.map { $0 == ASCII.lineFeed ? ASCII.space : $0 })
  }
}
