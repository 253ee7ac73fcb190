import CLinux
import Waveform

/// A recording's samples, stored as integers of 16, 24 or 32 bits at a place that a reader has found. Any bytes are
/// valid samples, so there is nothing to parse, and the service reads them itself: that takes less time than waking a
/// reader. Pixels have the upper 16 bits.
package final class PlainSamples: Sendable {
  /// Maximum number of bytes that are read for a window: this takes about as long as a switch to another queue.
  private static let byteLimit = 256 << 10
  /// Number of samples that are read at a time, so that they stay in the first-level cache.
  private static let samplesAtOnce = 8192

  private let file: OpenFile
  private let start: Int64
  private let sampleBytes: Int
  private let isBigEndian: Bool

  /// `start`: the place of the first frame, in bytes. `sampleBytes`: 2 to 4.
  init(of file: OpenFile, from start: Int64, sampleBytes: Int, isBigEndian: Bool) {
    (self.file, self.start, self.sampleBytes, self.isBigEndian) = (file, start, sampleBytes, isBigEndian)
  }

  /// Whether the file is as it was, and still there.
  package var isUnchanged: Bool { FileState(descriptor: file.descriptor) == file.state }

  /// Returns a window's pixels; nil if it is long, if not all of its samples are in memory, or if the file has changed.
  /// Never waits for the disk.
  package func sliceInMemory(_ window: WaveformWindow) -> WaveformSlice? {
    let (channels, range) = (window.extent.channels, window.frameRange)
    let frameBytes = sampleBytes * channels
    guard range.count <= Self.byteLimit / frameBytes, isUnchanged else { return nil }
    let framesAtOnce = max(Self.samplesAtOnce / channels / window.scale, 1) * window.scale
    let most = min(framesAtOnce, range.count) * channels
    // Those that are stored as pixels need them aren't copied.
    let isDirect = sampleBytes == 2 && !isBigEndian
    var bytes = [UInt8](repeating: 0, count: isDirect ? 0 : most * sampleBytes)
    var samples = [Int16](repeating: 0, count: most)
    var slice = SlicedSamples(window)
    for first in stride(from: range.lowerBound, to: range.upperBound, by: framesAtOnce) {
      let count = min(framesAtOnce, Int(range.upperBound - first)) * channels
      let (place, length) = (Int(start) + Int(first) * frameBytes, count * sampleBytes)
      let read = { (target: UnsafeMutableRawBufferPointer) in
        unsafe stillwave_read_cached(self.file.descriptor, target.baseAddress, length, place)
      }
      let got = unsafe isDirect ? samples.withUnsafeMutableBytes(read) : bytes.withUnsafeMutableBytes(read)
      guard got == length else { return nil }
      if !isDirect { unsafe takeUpperBits(of: bytes.span.bytes, count, into: &samples) }
      slice.append(samples.span.extracting(..<count))
    }
    return slice.finish()
  }

  private func takeUpperBits(of bytes: RawSpan, _ count: Int, into samples: inout [Int16]) {
    var place = isBigEndian ? 0 : sampleBytes - 2
    for index in 0..<count {
      // In bounds: `bytes` has `count` samples.
      let pair = unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: place, as: Int16.self)
      samples[index] = isBigEndian ? Int16(bigEndian: pair) : Int16(littleEndian: pair)
      place += sampleBytes
    }
  }
}
