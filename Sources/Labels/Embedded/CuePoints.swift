// Cue points and regions of WAV (Multimedia Programming Interface 1.0, 1991); all numbers little-endian:
//
//   fmt     tag(2) channels(2) rate(4) …
//   cue     count(4) *(id(4) place(4) "data" start(4) block(4) frame(4))
//   LIST    "adtl" *(type length(4) content [pad])
//     labl  id(4) text NUL                                        a point's name
//     note  id(4) text NUL                                        a remark, used if there is no name
//     ltxt  id(4) frames(4) purpose(4) country(2) language(2) dialect(2) code page(2) text     a region's length
//
// Texts are in UTF-8 or what `SourceText` finds.

/// The cue points of a WAV file.
package struct CuePoints {
  private var rate = 0
  private var points: [(id: Int, frame: Int)] = []
  private var names: [Int: String] = [:]
  private var notes: [Int: String] = [:]
  private var lengths: [Int: Int] = [:]

  mutating func add(format content: ArraySlice<UInt8>) {
    if content.count >= 8 { rate = Self.number(content.dropFirst(4)) }
  }

  /// Returns false if the chunk is damaged.
  mutating func add(points content: ArraySlice<UInt8>) -> Bool {
    guard content.count >= 4 else { return false }
    var rest = content.dropFirst(4)
    for _ in 0..<min(Self.number(content), LabelLimits.labels - points.count) {
      guard rest.count >= 24 else { return false }
      points.append((Self.number(rest), Self.number(rest.dropFirst(20))))
      rest = rest.dropFirst(24)
    }
    return true
  }

  mutating func add(list content: ArraySlice<UInt8>) {
    guard content.starts(with: "adtl".utf8) else { return }
    var rest = content.dropFirst(4)
    while rest.count >= 12 {
      let length = Self.number(rest.dropFirst(4))
      let content = rest.dropFirst(8).prefix(length)
      let id = Self.number(content)
      switch String(decoding: rest.prefix(4), as: UTF8.self) {
      case "labl": names[id] = Self.text(content.dropFirst(4))
      case "note": notes[id] = Self.text(content.dropFirst(4))
      case "ltxt" where content.count >= 8:
        lengths[id] = Self.number(content.dropFirst(4))
        if content.count > 20 { notes[id] = notes[id] ?? Self.text(content.dropFirst(20)) }
      default: break
      }
      rest = rest.dropFirst(8 + length + length % 2)
    }
  }

  /// The points as labels, in the order of the file.
  var labels: [Label] {
    guard rate > 0 else { return [] }
    func time(_ frame: Int) -> MediaTime { MediaTime(seconds: Double(frame) / Double(rate)) ?? .limit }
    return points.map { id, frame in
      Label(
        start: time(frame), end: time(frame + (lengths[id] ?? 0)), text: names[id] ?? notes[id] ?? "")
    }
  }

  /// Returns labels as the chunks `cue ` and `LIST`, which go behind the sound of a WAV file, and what they can't hold.
  /// O(n).
  package static func chunks(_ labels: [Label], sampleRate: Int) -> (bytes: [UInt8], leftOut: [LeftOut]) {
    guard !labels.isEmpty else { return ([], []) }
    func little(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
    func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
      Array(name.utf8) + little(content.count) + content + [UInt8](repeating: 0, count: content.count % 2)
    }
    func frame(_ time: MediaTime) -> Int { Int((time.seconds * Double(sampleRate)).rounded()) }
    var (points, list, omitted) = (little(labels.count), Array("adtl".utf8), WrittenLabels())
    for (index, label) in labels.enumerated() {
      let (id, start) = (little(index + 1), min(frame(label.start), Int(UInt32.max)))
      points += id + little(start) + Array("data".utf8) + little(0) + little(0) + little(start)
      if !label.text.isEmpty { list += chunk("labl", id + Array(label.text.utf8) + [0]) }
      let length = min(frame(label.end), Int(UInt32.max)) - start
      if length > 0 { list += chunk("ltxt", id + little(length) + Array("rgn ".utf8) + little(0) + little(0)) }
      omitted.leaveOut(.words, if: !label.words.isEmpty)
      omitted.leaveOut(.speakers, if: label.speaker != nil)
      omitted.leaveOut(details: label.details)
      omitted.leaveOut(
        .precision,
        if: [label.start, label.end].contains { MediaTime(seconds: Double(frame($0)) / Double(sampleRate)) != $0 })
    }
    return (chunk("cue ", points) + chunk("LIST", list), omitted.leftOut)
  }

  /// Returns the four bytes at the beginning of some, or the fewer that are there.
  private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
    bytes.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  private static func text(_ bytes: ArraySlice<UInt8>) -> String? {
    guard let source = try? SourceText(Array(bytes.prefix { $0 != 0 })) else { return nil }
    let text = normalText(source.bytes[...])
    return text.isEmpty ? nil : text
  }
}
