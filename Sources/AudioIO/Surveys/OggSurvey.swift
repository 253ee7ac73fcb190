// An Ogg page (RFC 3533 §6): "OggS", version, flags (2: first of a stream, 4: last), granule position 8, serial number
// 4, page number 4, checksum 4, number of segments, their lengths, one byte each; then the segments. Streams may follow
// one another in one file ("chained"); libsndfile decodes the first. And where the file ends within a page, as it does
// wherever it was cut, libsndfile doesn't know the length and can't seek: it is given the whole pages only.

/// What the pages of an Ogg file hold, found by stepping from page to page.
struct OggSurvey: Sendable, Equatable {
  /// More are no sound, but an attack on the time that opening them takes.
  private static let streamLimit = 1024

  /// The pages of each stream, the last whole one included; of streams side by side, all their pages.
  private(set) var streams: [Range<Int64>] = []
  /// Whether the last page that is whole is the last of its stream.
  private(set) var hasEnd = false

  /// Reads the page headers of the file at `path`.
  init(path: String) throws(AudioIOError) {
    var file = try ByteWindow(path: path)
    var offset: Int64 = 0
    var soundBegan = true
    while let word = try file.word(at: offset) {
      guard word == Self.mark, let head = try file.bytes(at: offset, count: 27), head[head.startIndex + 4] == 0 else {
        offset += 1
        continue
      }
      let (flags, segments) = (head[head.startIndex + 5], Int(head[head.startIndex + 26]))
      guard let lengths = try file.bytes(at: offset + 27, count: segments) else { break }
      let end = offset + Int64(27 + segments) + lengths.reduce(Int64(0)) { $0 + Int64($1) }
      hasEnd = flags & 4 != 0 && end <= file.size
      guard end <= file.size else { break }
      if let next = try Self.page(within: offset + 27..<end, of: &file) {
        offset = next
        continue
      }
      if flags & 2 != 0, soundBegan {
        guard streams.count < Self.streamLimit else { break }
        streams.append(offset..<end)
        soundBegan = false
      } else if let current = streams.indices.last {
        streams[current] = streams[current].lowerBound..<end
      }
      soundBegan = soundBegan || flags & 2 == 0
      offset = end
    }
  }

  private static let mark: UInt32 = 0x4F67_6753

  /// Where the next page begins, where it does before the present one's end: that was cut, and another joined to it.
  private static func page(within range: Range<Int64>, of file: inout ByteWindow) throws(AudioIOError) -> Int64? {
    if range.upperBound == file.size { return nil }
    if try file.word(at: range.upperBound) == mark { return nil }
    for offset in range where try file.word(at: offset) == mark { return offset }
    return nil
  }
}
