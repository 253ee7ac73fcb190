import CSndfile
import Foundation

/// A file format that libsndfile writes: a container with a codec.
struct SndfilePair: CustomStringConvertible {
  let container, codec: Int32
  let description: String

  /// The pairs that libsndfile says it writes for one channel.
  static func all() -> [SndfilePair] {
    var pairs: [SndfilePair] = []
    for container in names(SFC_GET_FORMAT_MAJOR_COUNT, SFC_GET_FORMAT_MAJOR) {
      for codec in names(SFC_GET_FORMAT_SUBTYPE_COUNT, SFC_GET_FORMAT_SUBTYPE) {
        let pair = SndfilePair(
          container: container.0, codec: codec.0, description: "\(container.1), \(codec.1)")
        var info = pair.info
        if unsafe sf_format_check(&info) != 0 { pairs.append(pair) }
      }
    }
    return pairs
  }

  private static func names(_ count: Int, _ item: Int) -> [(Int32, String)] {
    var number: Int32 = 0
    let size = Int32(MemoryLayout<Int32>.size)
    _ = unsafe sf_command(nil, Int32(count), &number, size)
    return (0..<number).map { index in
      var format = unsafe SF_FORMAT_INFO()
      unsafe format.format = index
      _ = unsafe sf_command(nil, Int32(item), &format, Int32(MemoryLayout<SF_FORMAT_INFO>.size))
      return unsafe (format.format, format.name.map { unsafe String(cString: $0) } ?? "")
    }
  }

  /// Whether the format has no signature: headerless audio, and Sound Designer II, whose header is in a Macintosh
  /// resource fork.
  var hasNoMark: Bool { [0x04_0000, 0x16_0000].contains(container) }

  /// A FastTracker instrument always has this rate; GSM and telephone codecs have the other.
  var rate: Int { container == 0x0F_0000 ? 44_100 : 8000 }

  private var info: SF_INFO {
    var info = SF_INFO()
    (info.samplerate, info.channels, info.format) = (Int32(rate), 1, container | codec)
    return info
  }

  /// Writes `samples` at `path`. False if libsndfile can't, although it says that it writes such files.
  func write(_ samples: [Int16], to path: String) -> Bool {
    var info = info
    guard let file = unsafe sf_open(path, Int32(SFM_WRITE), &info) else { return false }
    defer { unsafe _ = sf_close(file) }
    // Otherwise, floats would be as large as the integers, beyond full scale.
    _ = unsafe sf_command(file, Int32(SFC_SET_SCALE_INT_FLOAT_WRITE), nil, 1)
    return unsafe sf_write_short(file, samples, sf_count_t(samples.count)) == sf_count_t(samples.count)
  }

  /// Decodes the file at `path` from its start with libsndfile.
  func decode(_ path: String) -> [Int16] {
    let descriptor = unsafe open(path, O_RDONLY)
    var info = SF_INFO()
    guard let file = unsafe sf_open_fd(descriptor, Int32(SFM_READ), &info, 1) else { return [] }
    defer { unsafe _ = sf_close(file) }
    var samples = [Int16](repeating: 0, count: 100_000)
    let got = unsafe sf_read_short(file, &samples, sf_count_t(samples.count))
    return Array(samples.prefix(Int(max(got, 0))))
  }
}
