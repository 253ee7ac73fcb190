import CSndfile
import Glibc

/// The minimum time for reading a file: libsndfile's `sf_readf_short` into a page-aligned buffer and nothing else; for
/// lossy codecs `sf_readf_float`, because short integers wrap around.
enum BareRead {
  /// Returns the seconds for the whole file at `path`.
  static func seconds(_ path: String, floats: Bool = false) throws -> Double {
    let start = ContinuousClock.now
    var info = SF_INFO()
    guard let file = unsafe sf_open(path, Int32(SFM_READ), &info) else {
      throw BenchmarkFailure(what: "libsndfile can't open \(path)")
    }
    defer { unsafe _ = sf_close(file) }
    let frames = 65_536 / Int(info.channels)
    var memory: UnsafeMutableRawPointer?
    guard unsafe posix_memalign(&memory, 4096, frames * Int(info.channels) * 4) == 0, let base = unsafe memory else {
      throw BenchmarkFailure(what: "out of memory")
    }
    defer { unsafe free(base) }
    let (shorts, reals) = unsafe (base.assumingMemoryBound(to: Int16.self), base.assumingMemoryBound(to: Float.self))
    if floats {
      while unsafe sf_readf_float(file, reals, sf_count_t(frames)) > 0 {}
    } else {
      while unsafe sf_readf_short(file, shorts, sf_count_t(frames)) > 0 {}
    }
    return (ContinuousClock.now - start) / .seconds(1)
  }
}
