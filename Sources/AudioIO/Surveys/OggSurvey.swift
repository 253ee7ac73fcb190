import Terms

// An Ogg page (RFC 3533 §6): "OggS", version, flags (2: first of a stream, 4: last), granule position 8, serial number
// 4, page number 4, checksum 4, number of segments, their lengths in one byte each; then the segments. Streams may
// follow one another in one file ("chained"); libsndfile decodes the first. If the file ends in the middle of a page,
// as it does if it was cut off, libsndfile doesn't know the length and can't seek. So it gets only the complete pages.

/// The streams in an Ogg file, found by stepping from page to page.
struct OggSurvey: Sendable, Equatable {
  /// A file with more streams isn't plausible; it would be an attempt to waste the time it takes to open them.
  private static let streamLimit = 1024

  /// The pages of each stream through the last complete one. Interleaved streams share one range.
  private(set) var streams: [Range<Int64>] = []
  /// Whether the last complete page ends its stream.
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

  /// Returns the offset of the next page if it begins before the end of the current one, which was then cut off and
  /// joined to another.
  private static func page(within range: Range<Int64>, of file: inout ByteWindow) throws(AudioIOError) -> Int64? {
    if range.upperBound == file.size { return nil }
    if try file.word(at: range.upperBound) == mark { return nil }
    for offset in range where try file.word(at: offset) == mark { return offset }
    return nil
  }
}
