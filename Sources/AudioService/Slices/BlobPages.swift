import Glibc
import Storage
import Waveform

/// The pages of a waveform in a store on another machine: what a window doesn't need isn't fetched.
///
/// The pages' own checksums tell what was damaged on the way.
struct BlobPages: PyramidSource {
  let key: ObjectKey
  let objects: any ObjectStore

  var isApart: Bool { true }

  /// Does nothing: a page that is missing says so when it is read.
  func check(pages count: Int64) {}

  func read(_ runs: [Range<Int64>], waiting: Bool) throws(WaveformError) -> [[UInt64]] {
    guard waiting else { throw .io(operation: "read", path: key.description, errno: EAGAIN) }
    let ranges = Self.ranges(of: runs)
    let found = try available { () throws(StorageError) in try objects.read(key, ranges) }
    guard let found else { throw .io(operation: "read", path: key.description, errno: ENOENT) }
    return try zip(ranges, found).map { (range, bytes) throws(WaveformError) in
      guard bytes.count == range.count else {
        throw .truncatedPyramid(size: range.lowerBound + Int64(bytes.count), needed: range.upperBound)
      }
      return unsafe bytes.withUnsafeBytes { bytes in
        unsafe [UInt64](unsafeUninitializedCapacity: bytes.count / 8) { words, count in
          unsafe UnsafeMutableRawBufferPointer(words).copyMemory(from: bytes)
          count = bytes.count / 8
        }
      }
    }
  }

  func isAtHand(_ runs: [Range<Int64>]) -> Bool { objects.isAtHand(key, Self.ranges(of: runs)) }

  func fetch(_ runs: [Range<Int64>]) throws(WaveformError) {
    try available { () throws(StorageError) in _ = try objects.read(key, Self.ranges(of: runs)) }
  }

  private static func ranges(of runs: [Range<Int64>]) -> [Range<Int64>] {
    runs.map { $0.lowerBound * PyramidFile.pageBytes..<$0.upperBound * PyramidFile.pageBytes }
  }

  private func available<R>(_ body: () throws(StorageError) -> R) throws(WaveformError) -> R {
    do throws(StorageError) { return try body() } catch { throw .unavailable(PagesUnavailable(error)) }
  }
}
