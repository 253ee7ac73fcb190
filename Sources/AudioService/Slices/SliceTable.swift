import HTTP
import Storage
import Waveform

/// Finished slices as they were answered: the first view of a recording is what everybody who opens it asks for.
///
/// Slices of usual size lie in files in memory: their bytes go from there to the sockets without being copied, a tenth
/// of the time that such an answer takes.
struct SliceTable: Sendable {
  /// What names a slice of a recording whose waveform is whole.
  struct Key: Hashable, Sendable {
    var recording: RecordingID
    var query: WaveformQuery
    var form: WaveformForm
  }

  private let cache: Cache<Key, UInt64, Representation>
  /// Longer ones are streams, or would soon push out all others.
  private static let longest = 128 * 1024
  /// To hand over the pages of a file is a system call of its own; shorter slices are copied faster.
  private static let shortestInFile = 8 * 1024
  /// What an entry takes besides its content, measured: many small slices must not outgrow the limit.
  private static let overhead = 6 * 1024

  /// `limit`: bytes kept at most, what an entry takes besides its content included. `version`: of a recording's row.
  init(limit: Int = 8 << 20, version: @escaping @Sendable (RecordingID) -> UInt64) {
    let memory = MemoryFile(turnover: limit / 2)
    cache = Cache(
      limit: limit, cost: { Int($0.body.length ?? 0) + Self.overhead }, settle: { Self.settle($0, in: memory) },
      version: { version($0.recording) })
  }

  /// Copies a slice to the present file, so that files of earlier slices can go.
  private static func settle(_ slice: Representation, in memory: MemoryFile) -> Representation {
    guard let bytes = slice.body.bytesAtHand, bytes.count >= shortestInFile, let kept = memory.append(bytes) else {
      return slice
    }
    var slice = slice
    slice.body = .file(kept)
    return slice
  }

  subscript(key: Key) -> Representation? { cache[key] }

  /// The version of a slice, to be read before the slice is made.
  func version(_ key: Key) -> UInt64 { cache.version(key) }

  /// Keeps a slice of a whole waveform, unless it is a stream, which is read once.
  func keep(_ slice: Representation, for key: Key, version: UInt64) {
    guard let count = slice.body.bytesAtHand?.count, count <= Self.longest else { return }
    cache.keep(slice, for: key, version: version)
  }
}
