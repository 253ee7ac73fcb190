// An Ogg page (RFC 3533 §6): "OggS", version, flags (2: first of a stream, 4: last), granule position 8, serial number
// 4, page number 4, checksum 4, number of segments, their lengths, one byte each; then the segments. Streams may follow
// one another in one file ("chained"); libsndfile decodes the first.

/// What the pages of an Ogg file promise, found by stepping from page to page.
public struct OggSurvey: Sendable, Equatable {
  /// Whether streams follow one another.
  public private(set) var isChained = false
  /// Whether the last page that is whole is the last of its stream.
  public private(set) var hasEnd = false

  /// Reads the page headers of the file at `path`.
  public init(path: String) throws(AudioIOError) {
    var file = try ByteWindow(path: path)
    var offset: Int64 = 0
    var soundBegan = false
    while let head = try file.bytes(at: offset, count: 27) {
      guard head.starts(with: "OggS".utf8) else {
        offset += 1
        continue
      }
      let (flags, segments) = (head[head.startIndex + 5], Int(head[head.startIndex + 26]))
      guard let lengths = try file.bytes(at: offset + 27, count: segments) else { break }
      offset += Int64(27 + segments) + lengths.reduce(Int64(0)) { $0 + Int64($1) }
      if flags & 2 != 0, soundBegan { isChained = true }
      soundBegan = soundBegan || flags & 2 == 0
      hasEnd = flags & 4 != 0 && offset <= file.size
    }
  }
}
