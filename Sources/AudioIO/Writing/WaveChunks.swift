import Terms

// What a WAV file says besides its sound (Multimedia Programming Interface 1.0, 1991; EBU Tech 3285 and 3306; iXML
// 3.01). All numbers are little-endian.
//
//   cue     count(4) *(id(4) place(4) "data" start(4) block(4) frame(4))
//   LIST    "adtl" *(type length(4) id(4) … [pad])      names and lengths of the points
//   LIST    "INFO" *(type length(4) text [pad])
//   bext    …, and from byte 338 on the frames since midnight(8)
//   iXML    the same number in two halves: <TIMESTAMP_SAMPLES_SINCE_MIDNIGHT_HI>, …_LO
//
// A copy gets the chunks behind its sound. A part gets only those that can be cut: the points within it, moved, and the
// frames since midnight of its beginning.

/// The chunks of a WAV file that a copy keeps.
package struct WaveChunks: Sendable, Equatable {
  private struct Chunk: Equatable {
    var id: String
    var content: [UInt8]

    /// Its name for people.
    var name: String {
      switch id {
      case "cue ": "cue points"
      case "bext": "the description of Broadcast Wave (bext)"
      case "iXML": "iXML"
      case "LIST": "the list “\(text(content.prefix(4)))”"
      default: "the chunk “\(text(id.utf8))”"
      }
    }

    /// Returns letters as they are, and other bytes as dots.
    private func text(_ bytes: some Sequence<UInt8>) -> String {
      let plain = bytes.filter { $0 != 0x20 }.map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: ".") }
      return String(decoding: plain, as: UTF8.self)
    }
  }

  private var chunks: [Chunk] = []
  /// Names of what can't be kept.
  private var omitted: [String] = []

  /// Maximum length of a chunk, and of all together, in bytes.
  private static let (chunkLimit, totalLimit) = (1 << 20, 8 << 20)
  /// Chunks that describe the sound, or that writers fill space with.
  private static let structural: Set<String> = [
    "fmt ", "data", "fact", "ds64", "JUNK", "junk", "PAD ", "FLLR", "filr", "PEAK", "levl",
  ]
  /// Chunks that are right for a part, too, perhaps after `cut`.
  private static let divisible: Set<String> = ["cue ", "LIST", "bext", "iXML", "id3 ", "ID3 ", "_PMX", "DISP", "CSET"]

  /// No chunks.
  package init() {}

  /// Reads the chunks of the file at `path`. There are none if it isn't a WAV or RF64 file.
  init(path: String) {
    guard let header = try? ContainerHeader(path: path), [.wav, .rf64].contains(header.container),
      var file = try? ByteWindow(path: path, length: Self.chunkLimit + 8)
    else { return }
    var (offset, total): (Int64, Int) = (12, 0)
    for _ in 0..<4096 {
      guard let head = try? file.bytes(at: offset, count: 8) else { break }
      let id = String(String.UnicodeScalarView(head.prefix(4).map { UnicodeScalar($0) }))
      let size = id == "data" ? header.declaredDataBytes ?? 0 : Int64(Self.number(head.dropFirst(4)))
      if !Self.structural.contains(id) {
        let content = size <= Self.chunkLimit ? (try? file.bytes(at: offset + 8, count: Int(size))) ?? nil : nil
        let chunk = Chunk(id: id, content: content.map { Array($0) } ?? [])
        total += chunk.content.count
        if content == nil || total > Self.totalLimit || Self.hasGain(chunk.content) {
          if omitted.count < 16 { omitted.append(chunk.name) }
        } else {
          chunks.append(chunk)
        }
      }
      offset += 8 + size + size % 2
    }
  }

  /// Whether tags in a chunk give a gain, which is wrong for another sound. UTF-16 has zeros between the letters.
  private static func hasGain(_ content: [UInt8]) -> Bool {
    guard content.starts(with: "ID3".utf8) else { return false }
    let text = String(decoding: content.filter { $0 != 0 }, as: UTF8.self).uppercased()
    return text.contains("REPLAYGAIN_")
  }

  /// Whether there is a list of texts, which also has those in `SoundTags`.
  var hasTexts: Bool { chunks.contains { $0.id == "LIST" && $0.content.starts(with: "INFO".utf8) } }

  /// The chunks as bytes of a WAV file.
  var bytes: [UInt8] {
    chunks.flatMap { chunk in
      chunk.id.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } + Self.bytes(chunk.content.count, 4)
        + chunk.content + [UInt8](repeating: 0, count: chunk.content.count % 2)
    }
  }

  /// Returns the names of what a file with this container lacks.
  func leftOut(by container: AudioContainer) -> [String] {
    if [.wav, .rf64].contains(container) { return omitted }
    return chunks.filter { $0.id != "LIST" || !$0.content.starts(with: "INFO".utf8) }.map(\.name) + omitted
  }

  /// Keeps only the chunks that still hold for a part of `count` frames that begins at frame `start`.
  mutating func cut(from start: Int64, count: Int64) {
    omitted += chunks.filter { !Self.divisible.contains($0.id) }.map(\.name)
    chunks.removeAll { !Self.divisible.contains($0.id) }
    var kept: Set<Int> = []
    for index in chunks.indices where chunks[index].id == "cue " {
      kept.formUnion(Self.cut(points: &chunks[index].content, from: start, count: count))
    }
    for index in chunks.indices {
      switch chunks[index].id {
      case "LIST" where chunks[index].content.starts(with: "adtl".utf8):
        Self.keep(kept, inList: &chunks[index].content)
      case "bext" where chunks[index].content.count >= 346:
        let time = Self.number(chunks[index].content[338..<346])
        chunks[index].content.replaceSubrange(338..<346, with: Self.bytes(time &+ Int(start), 8))
      case "iXML": Self.move(iXML: &chunks[index].content, by: Int(start))
      default: break
      }
    }
    chunks.removeAll { $0.id == "cue " && $0.content.count <= 4 || $0.id == "LIST" && $0.content.count <= 4 }
  }

  /// Returns the numbers of the points that are kept.
  private static func cut(points content: inout [UInt8], from start: Int64, count: Int64) -> Set<Int> {
    var (points, kept): ([UInt8], Set<Int>) = ([], [])
    for place in stride(from: 4, through: content.count - 24, by: 24) {
      var point = Array(content[place..<place + 24])
      let frame = Int64(number(point[20..<24]))
      guard frame >= start, frame - start < count else { continue }
      kept.insert(number(point[..<4]))
      point.replaceSubrange(20..<24, with: bytes(Int(frame - start), 4))
      // The place in the playlist, which is usually the same.
      let position = Int64(number(point[4..<8]))
      if position >= start { point.replaceSubrange(4..<8, with: bytes(Int(position - start), 4)) }
      points += point
    }
    content = bytes(points.count / 24, 4) + points
    return kept
  }

  private static func keep(_ points: Set<Int>, inList content: inout [UInt8]) {
    var (list, place) = (Array(content.prefix(4)), 4)
    while place + 12 <= content.count {
      let size = number(content[place + 4..<place + 8])
      let end = min(place + 8 + size + size % 2, content.count)
      if points.contains(number(content[place + 8..<place + 12])) { list += content[place..<end] }
      place = end
    }
    content = list
  }

  private static func move(iXML content: inout [UInt8], by frames: Int) {
    func range(_ half: String) -> Range<Int>? {
      let mark = Array("<TIMESTAMP_SAMPLES_SINCE_MIDNIGHT_\(half)>".utf8)
      guard content.count > mark.count,
        let found = (0..<content.count - mark.count).first(where: { content[$0...].starts(with: mark) })
      else { return nil }
      let begin = found + mark.count
      return begin..<(content[begin...].firstIndex(of: UInt8(ascii: "<")) ?? begin)
    }
    func value(_ range: Range<Int>) -> Int? { UInt32(String(decoding: content[range], as: UTF8.self)).map { Int($0) } }
    guard let low = range("LO"), let lowValue = value(low) else { return }
    let high = range("HI")
    let sum = (high.flatMap(value) ?? 0) << 32 &+ lowValue &+ frames
    var halves = [(low, sum & 0xFFFF_FFFF)] + (high.map { [($0, sum >> 32)] } ?? [])
    halves.sort { $0.0.lowerBound > $1.0.lowerBound }
    for (range, value) in halves { content.replaceSubrange(range, with: Array("\(value)".utf8)) }
  }

  private static func number(_ bytes: some BidirectionalCollection<UInt8>) -> Int {
    bytes.reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  private static func bytes(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }
}
